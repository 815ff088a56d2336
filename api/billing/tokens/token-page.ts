import type { AccountToken, TokenUse } from "../../../shared/organizations/account-tokens.ts";
import type { OwnLimits } from "../../../shared/organizations/limits.ts";
import type { SentForm } from "../../pages/form-fields.ts";
import { count, amount } from "../../pages/format.ts";
import { html, type Html } from "../../pages/html.ts";
import { organizationField } from "../frame/organization-field.ts";
import { limitFields } from "../settings/limit-fields.ts";
import { spentSoFar } from "../settings/limits-section.ts";
import { endOf, nameOf, time } from "./token-list-page.ts";

/** What the page of one token shows. */
export interface TokenDetails {
  organizationId: string;
  isOwn: boolean;
  token: AccountToken;
  limits: OwnLimits;
  use: TokenUse;
}

/** One token: what it may do, what it cost, its limits, and its revocation. */
export function tokenPage(details: TokenDetails, sent: SentForm, notice: Html | false = false): Html {
  const { token, use, isOwn } = details;
  const used = use.byToken.get(token.tokenId) ?? { charges: 0, netMils: 0 };
  return html`<p class="back"><a href="/billing/tokens">All tokens</a></p>
${notice}
<section class="card facts" aria-label="Token"><dl>
<div><dt>Token</dt><dd><code>smk_…${token.last4}</code>${isOwn && html` <span class="tag">this session</span>`}</dd></div>
<div><dt>Id</dt><dd><code>${token.tokenId}</code></dd></div>
<div><dt>It may</dt><dd>${token.scopes.map((scope) => html`<span class="tag">${scope}</span> `)}</dd></div>
<div><dt>Created</dt><dd>${time(token.createdAt)}</dd></div>
<div><dt>Last used</dt><dd>${token.lastUsedAt ? time(token.lastUsedAt) : "Never"}</dd></div>
<div><dt>Expires</dt><dd>${endOf(token)}</dd></div>
<div><dt>${use.isWhole ? "Last 30 days" : html`Since ${time(use.since)}`}</dt><dd>${amount(used.netMils)} <span class="aside">for ${count(used.charges)} charged searches</span> <a href="/billing/searches?token=${token.tokenId}">Show them</a></dd></div>
</dl></section>
${token.isValid && limitsSection(details, sent)}
${token.isValid && revocation(details)}`;
}

function limitsSection({ organizationId, token: { tokenId }, limits }: TokenDetails, sent: SentForm): Html {
  return html`<section aria-labelledby="limits-title"><div class="head"><h2 id="limits-title">Limits</h2></div>
<form class="card form" method="post" action="/billing/tokens/limits">
${organizationField(organizationId)}<input type="hidden" name="token" value="${tokenId}">
${spentSoFar(limits)}
${limitFields(sent, limits)}
<p class="aside">A search beyond a limit gets 402 and costs nothing. Every API applies a change within two seconds.</p>
<button>Save limits</button>
</form></section>`;
}

function revocation({ organizationId, token, isOwn }: TokenDetails): Html {
  return html`<section aria-labelledby="revoke-title"><div class="head"><h2 id="revoke-title">Revoke</h2></div>
<details class="card form"><summary>Revoke “${nameOf(token)}”</summary>
<form method="post" action="/billing/tokens/revoke">
${organizationField(organizationId)}<input type="hidden" name="token" value="${token.tokenId}">
<p>Every API refuses it within two seconds. This cannot be undone.${isOwn && " You are signed in with this token: your session ends too."}</p>
<button class="danger">Revoke for ever</button>
</form></details></section>`;
}
