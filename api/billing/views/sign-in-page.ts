import { html, type Html } from "./html.ts";

/** The form of somebody who is not signed in. `says` tells why it is shown again. */
export function signInPage(says?: string): Html {
  return html`<main class="narrow">
<p class="brand">Serpmill <span>Billing</span></p>
<h1>Sign in</h1>
<p>Use an API token of your organization.</p>
<form class="sign-in" method="post" action="/billing/sign-in">
${says !== undefined && html`<p id="problem" class="notice warning" role="alert">${says}</p>`}
<label for="token">Token</label>
<input id="token" name="token" type="password" required maxlength="200" autocomplete="current-password" autocapitalize="none" spellcheck="false" placeholder="smk_…" autofocus${
    says !== undefined && html` aria-invalid="true" aria-describedby="problem"`
  }>
<button>Sign in</button>
</form>
<p class="aside">The token is checked and not kept: your browser gets a session that ends after 30 minutes without a visit, and after 12 hours at the latest.</p>
</main>`;
}
