import { html, type Html } from "./html.ts";

/** The problem of a valid token without the scope `billing`. */
export const scopeMissing =
  "This token may not open the billing page, because it lacks the scope billing. Use a token that has it.";

/** The sign-in form. @param problem why the form is shown again. */
export function signInPage(problem?: string): Html {
  return html`<main class="narrow">
<p class="brand">Serpmill <span>Billing</span></p>
<h1>Sign in</h1>
<p>Use one of your organization’s API tokens.</p>
<form class="sign-in" method="post" action="/billing/sign-in">
${problem !== undefined && html`<p id="problem" class="notice warning" role="alert">${problem}</p>`}
<label for="token">Token</label>
<input id="token" name="token" type="password" required maxlength="200" autocomplete="current-password" autocapitalize="none" spellcheck="false" placeholder="smk_…" autofocus${
    problem !== undefined && html` aria-invalid="true" aria-describedby="problem"`
  }>
<button>Sign in</button>
</form>
<p class="aside">Your token is checked but not stored. The session ends after 30 minutes without activity, and after 12 hours at the latest.</p>
</main>`;
}
