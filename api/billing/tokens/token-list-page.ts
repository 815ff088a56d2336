import type { AccountToken, TokenUse } from "../../../shared/organizations/account-tokens.ts";
import type { FamilyMember } from "../../../shared/organizations/token-family.ts";
import type { SentForm } from "../../pages/form-fields.ts";
import { count, dateOf, amount, searches } from "../../pages/format.ts";
import { html, type Html } from "../../pages/html.ts";
import { tokenForm } from "./token-form.ts";

/** What the page of all tokens shows. */
export interface TokenList {
  organizationId: string;
  /** The token of the session. */
  ownTokenId: string;
  /** What bounds the tokens that it makes; undefined if it was removed just now. */
  own: FamilyMember | undefined;
  tokens: readonly AccountToken[];
  use: TokenUse;
}

/** All tokens of an organization, and the form for a new one. */
export function tokenListPage(list: TokenList, sent: SentForm, notice: Html | false = false): Html {
  const { tokens, use } = list;
  const valid = tokens.filter(({ isValid }) => isValid);
  const ended = tokens.filter(({ isValid }) => !isValid);
  const problem = sent.problems.id ?? sent.problems.form;
  const period = use.isWhole ? "Last 30 days" : `Since ${dateOf(use.since)}`;
  return html`${notice}${problem !== undefined && html`<p class="notice warning" role="alert">${problem}</p>`}
<section>${table("Valid tokens", valid, list, period)}
${!use.isWhole && html`<p class="aside">The use is counted from the newest 20,000 entries of the history.</p>`}</section>
<section aria-labelledby="new-title"><div class="head"><h2 id="new-title">New token</h2></div>
${tokenForm(list.organizationId, sent, list.own)}</section>
${ended.length > 0 && html`<details><summary>Revoked and expired tokens (${count(ended.length)})</summary>${table("Revoked and expired tokens", ended, list, period)}</details>`}`;
}

function table(label: string, tokens: readonly AccountToken[], list: TokenList, period: string): Html {
  return html`<div class="scroll" role="region" aria-label="${label}" tabindex="0"><table class="rows stacked">
<thead><tr><th scope="col">Name</th><th scope="col">Scopes</th><th scope="col">Last used</th><th scope="col">Expires</th><th scope="col">Limits</th><th scope="col" class="number">${period}</th></tr></thead>
<tbody>
${tokens.map((token) => row(token, list, period))}</tbody>
</table></div>`;
}

function row(token: AccountToken, { use, ownTokenId }: TokenList, period: string): Html {
  const { tokenId, scopes, lastUsedAt } = token;
  const used = use.byToken.get(tokenId);
  return html`<tr>
<th scope="row"><a href="/billing/tokens/${tokenId}">${nameOf(token)}</a>${tokenId === ownTokenId && html` <span class="tag">this session</span>`}<code>smk_…${token.last4}</code></th>
<td data-label="Scopes"><span>${scopes.map((scope) => html`<span class="tag">${scope}</span> `)}</span></td>
<td data-label="Last used">${lastUsedAt ? time(lastUsedAt) : "Never"}</td>
<td data-label="Expires"><span>${endOf(token)}</span></td>
<td data-label="Limits"><span>${limitsOf(token)}</span></td>
<td data-label="${period}" class="number"><span>${used ? html`${amount(used.netMils)} <span class="aside">${searches(used.charges)}</span>` : "–"}</span></td>
</tr>
`;
}

/** What people know a token by. */
export const nameOf = ({ name }: AccountToken) => name ?? "Without a name";

export const time = (at: Date) => html`<time datetime="${at.toISOString()}">${dateOf(at)}</time>`;

/** When a token ended or will end. */
export function endOf({ revokedAt, expiresAt, isValid }: AccountToken): Html | string {
  if (revokedAt) return html`Revoked ${time(revokedAt)}`;
  if (!expiresAt) return "Never";
  return isValid ? time(expiresAt) : html`Expired ${time(expiresAt)}`;
}

function limitsOf({ dayLimitMils, monthLimitMils }: AccountToken): Html | string {
  if (dayLimitMils === null && monthLimitMils === null) return "None";
  const limit = (mils: number | null, period: string) => mils !== null && html`${amount(mils)} a ${period}<br>`;
  return html`${limit(dayLimitMils, "day")}${limit(monthLimitMils, "month")}`;
}
