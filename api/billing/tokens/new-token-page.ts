import type { IssuedToken } from "../../../shared/organizations/tokens.ts";
import { dateOf } from "../../pages/format.ts";
import { html } from "../../pages/html.ts";
import type { AccountView } from "../frame/account-frame.ts";

const list = new Intl.ListFormat("en-GB");

/** A token that was made now: the only page that ever shows it. The button to copy it appears with the script. */
export function newTokenPage({ token, tokenId, name, scopes, expiresAt }: IssuedToken): AccountView {
  return {
    path: "/billing/tokens",
    title: "Copy the token now",
    body: html`<section class="card form" aria-label="New token">
<p><strong>${name ?? "It"}</strong> has the ${scopes.length === 1 ? "scope" : "scopes"} ${list.format(scopes)}. It ${expiresAt ? html`expires on ${dateOf(expiresAt)}` : "never expires"}.</p>
<p class="copy"><code class="secret" id="token" tabindex="0">${token}</code><button type="button" class="plain" data-copy="token" hidden>Copy</button></p>
<p class="notice warning">This is the only time that the token is shown. Serpmill stores a hash of it, from which it cannot be read back.</p>
<p class="row"><a class="button primary" href="/billing/tokens">I have copied it</a> <a class="button" href="/billing/tokens/${tokenId}">Its limits and use</a></p>
</section>`,
  };
}
