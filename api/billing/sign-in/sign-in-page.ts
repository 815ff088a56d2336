import type { Brand } from "../../brand/brand.ts";
import { html, type Html } from "../../pages/html.ts";
import { narrowPage } from "../frame/account-frame.ts";

/** The problem of a valid token without the scope `billing`. */
export const scopeMissing =
  "This token may not open the account, because it lacks the scope billing. Use a token that has it.";

/** The sign-in form. @param options.next where the person wanted to go; `problem`: why the form is shown again. */
export function signInPage(brand: Brand, { next, problem }: { next: string; problem?: string | undefined }): Html {
  return narrowPage(
    brand,
    html`<h1>Sign in</h1>
<p>Use one of your organization’s API tokens. The operator of this service gives you the first.</p>
<form class="sign-in" method="post" action="/billing/sign-in">
${problem !== undefined && html`<p id="problem" class="notice warning" role="alert">${problem}</p>`}
<input type="hidden" name="next" value="${next}">
<label for="token">Token</label>
<input id="token" name="token" type="password" required maxlength="200" autocomplete="current-password" autocapitalize="none" spellcheck="false" placeholder="smk_…" autofocus${
      problem !== undefined && html` aria-invalid="true" aria-describedby="problem"`
    }>
<button>Sign in</button>
</form>
<p class="aside">Your token is checked but not stored. The session ends after 30 minutes without activity, and after 12 hours at the latest. Without a token you can read the <a href="/docs">reference</a>.</p>`,
  );
}
