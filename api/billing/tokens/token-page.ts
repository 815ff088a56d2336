import type { AccountToken, TokenUse } from "../../../shared/organizations/account-tokens.ts";
import type { OwnLimits } from "../../../shared/organizations/limits.ts";
import type { FamilyMember } from "../../../shared/organizations/token-family.ts";
import type { SentForm } from "../../pages/form-fields.ts";
import { count, amount } from "../../pages/format.ts";
import { html, type Html } from "../../pages/html.ts";
import { organizationField } from "../frame/account-frame.ts";
import { limitFields, spentSoFar } from "../settings/limits.ts";
import { endOf, nameOf, time } from "./token-list-page.ts";

/** What the page of one token shows. */
export interface TokenDetails {
  organizationId: string;
  isOwn: boolean;
  token: AccountToken;
  limits: OwnLimits;
  /** The valid tokens that it made, that these made, and so on. */
  descendants: readonly FamilyMember[];
  use: TokenUse;
}

/** One token: what it may do, what it cost, its limits, and its revocation. */
export function tokenPage(details: TokenDetails, sent: SentForm, notice: Html | false = false): Html {
  const { token, use, isOwn } = details;
  const used = use.byToken.get(token.tokenId) ?? { charges: 0, netMils: 0 };
  return html`${notice}
<section class="panel" aria-label="Token">
<div class="head"><p><span class="name">${use.isWhole ? "Last 30 days" : html`Since ${time(use.since)}`}</span><br>
<span class="figure">${amount(used.netMils)}</span> <span class="aside">for ${chargedSearches(used.charges)}</span></p>
<p class="row"><a class="button" href="/billing/searches?token=${token.tokenId}">Its searches</a> <a class="button" href="/billing?token=${token.tokenId}#usage">Its usage</a></p></div>
<dl class="fields">
<div><dt>Scopes</dt><dd>${token.scopes.map((scope) => html`<span class="tag">${scope}</span> `)}</dd></div>
<div><dt>Last used</dt><dd>${token.lastUsedAt ? time(token.lastUsedAt) : "Never"}</dd></div>
<div><dt>Expires</dt><dd>${endOf(token)}</dd></div>
<div><dt>Created</dt><dd>${time(token.createdAt)}</dd></div>
${token.parentId !== null && html`<div><dt>Made by</dt><dd><a href="/billing/tokens/${token.parentId}">another token</a></dd></div>`}
<div><dt>Token</dt><dd><code>smk_…${token.last4}</code>${isOwn && html` <span class="tag">this session</span>`}</dd></div>
<div class="wide"><dt>ID</dt><dd><code>${token.tokenId}</code></dd></div>
</dl></section>
${token.isValid && limitsSection(details, sent)}
${(token.isValid || details.descendants.length > 0) && revocation(details)}`;
}

const chargedSearches = (charges: number) => `${count(charges)} charged ${charges === 1 ? "search" : "searches"}`;

function limitsSection({ organizationId, token: { tokenId }, limits }: TokenDetails, sent: SentForm): Html {
  return html`<section class="setting" aria-labelledby="limits-title"><div class="intro"><h2 id="limits-title">Limits</h2>
<p class="aside">What this token may spend. A search beyond a limit gets 402 and costs nothing. Every API applies a change within two seconds.</p></div>
<form class="form" method="post" action="/billing/tokens/limits">
${organizationField(organizationId)}<input type="hidden" name="token" value="${tokenId}">
${spentSoFar(limits)}
${limitFields(sent, limits)}
<button>Save limits</button>
</form></section>`;
}

function revocation({ organizationId, token, isOwn, descendants }: TokenDetails): Html {
  return html`<section class="setting" aria-labelledby="revoke-title"><div class="intro"><h2 id="revoke-title">Revoke</h2>
<p class="aside">For a token that leaked, or that is no longer used.</p></div>
<details><summary class="danger">Revoke “${nameOf(token)}”</summary>
<form method="post" action="/billing/tokens/revoke">
${organizationField(organizationId)}<input type="hidden" name="token" value="${token.tokenId}">
<p>Every API refuses it within two seconds. This cannot be undone.${isOwn && " You are signed in with this token: your session ends too."}</p>
${descendants.length > 0 && familyChoice(descendants)}<button class="danger">Revoke for ever</button>
</form></details></section>`;
}

/** Tokens that outlive the one that made them: a thief of it may have them too. */
function familyChoice(descendants: readonly FamilyMember[]): Html {
  const links = descendants.map(
    ({ tokenId, name, last4 }) =>
      html`<li><a href="/billing/tokens/${tokenId}">${name ?? "Without a name"}</a> <code>smk_…${last4}</code></li>`,
  );
  return html`<p>With it these valid tokens were made:</p>
<ul>${links}</ul>
<p><label><input type="checkbox" name="children" value="revoke"> Revoke them too</label></p>
`;
}
