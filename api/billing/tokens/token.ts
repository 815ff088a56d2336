import type { Redis } from "ioredis";
import type { Changer } from "../../../shared/audit/audit.ts";
import type { Database } from "../../../shared/database/pool.ts";
import type { Querying } from "../../../shared/database/transaction.ts";
import { CallerError } from "../../../shared/errors.ts";
import { newId, tokenId as tokenIdSchema } from "../../../shared/ids.ts";
import { scopes as allScopes } from "../../../shared/organizations/organizations.ts";
import { readAccountToken, readTokenUse, type TokenUse } from "../../tokens/account-tokens.ts";
import { type OwnLimits, readOwnLimits } from "../../organizations/limits.ts";
import { changeLimitsRecorded, revokeFamilyRecorded } from "../../organizations/audited-changes.ts";
import { DayLimitRequired, LimitsTooHigh, readDescendants } from "../../tokens/token-family.ts";
import { type AccountToken, endToken } from "../../tokens/tokens.ts";
import { type AccountView, organizationField, statusNotice } from "../frame/account-frame.ts";
import { changeAccount, type FormRequest, leadTo, type PageRequest } from "../frame/account-handlers.ts";
import type { Sessions } from "../session/sessions.ts";
import { dayLimitRequired, limitProblems, limitsSaved, limitsSection, readLimitChange } from "../settings/limits.ts";
import {
  countNewToken,
  endOf,
  issue,
  nameOf,
  newTokenPage,
  time,
  type TokenParts,
  tooManyNewTokens,
} from "./tokens.ts";
import { newForm, selectField, type SentForm } from "../../pages/form.ts";
import { amount, momentOf, plural } from "../../pages/format.ts";
import { html, type Html } from "../../pages/html.ts";

/** GET /billing/tokens/:tokenId. */
export async function writeToken({ database }: TokenParts, asked: PageRequest): Promise<AccountView> {
  const { query, params } = asked.request;
  return tokenView(database, asked, { id: params["tokenId"], sent: newForm, isSaved: query.saved !== undefined });
}

async function tokenView(
  database: Database,
  asked: PageRequest,
  { id, sent, isSaved = false }: { id: unknown; sent: SentForm; isSaved?: boolean },
): Promise<AccountView> {
  const { organizationId, tokenId: ownTokenId } = asked.caller;
  const token = await findToken(database, asked, id);
  const [limits, use, descendants] = await Promise.all([
    readOwnLimits(database, "token", token.tokenId),
    readTokenUse(database, organizationId),
    readDescendants(database, token.tokenId),
  ]);
  if (!limits) throw new CallerError("not_found");
  const details = { organizationId, isOwn: token.tokenId === ownTokenId, token, limits, use, descendants };
  const above = { path: "/billing/tokens", label: "All tokens" };
  const body = html`${isSaved && statusNotice(limitsSaved(limits))}
${tokenPage(details, sent)}`;
  return { path: "/billing/tokens", title: nameOf(token), above, body };
}

interface TokenDetails {
  organizationId: string;
  isOwn: boolean;
  token: AccountToken;
  limits: OwnLimits;
  /** The valid tokens that it created, that these created, and so on. */
  descendants: readonly AccountToken[];
  use: TokenUse;
}

function tokenPage(details: TokenDetails, sent: SentForm): Html {
  const { token, limits, use, isOwn } = details;
  const used = use.byToken.get(token.tokenId) ?? { charges: 0, netMils: 0 };
  return html`<section class="panel" aria-label="Token">
<div class="head"><p><span class="name">${use.isWhole ? "Last 30 days" : html`Since ${time(use.since)}`}</span><br>
<span class="figure">${amount(used.netMils)}</span> <span class="aside">for ${plural(used.charges, "charged search", "charged searches")}</span></p>
<p class="row"><a class="button" href="/billing/searches?token=${token.tokenId}">Searches</a> <a class="button" href="/billing?token=${token.tokenId}#usage">Usage</a></p></div>
<dl class="fields">
<div><dt>Scopes</dt><dd>${token.scopes.map((scope) => html`<span class="tag">${scope}</span> `)}</dd></div>
<div><dt>Last used</dt><dd>${token.lastUsedAt ? time(token.lastUsedAt) : "Never"}</dd></div>
<div><dt>Expires</dt><dd>${endOf(token)}</dd></div>
<div><dt>Created</dt><dd>${time(token.createdAt)}</dd></div>
${token.parentId !== null && html`<div><dt>Created by</dt><dd><a href="/billing/tokens/${token.parentId}">another token</a></dd></div>`}
<div><dt>Token</dt><dd><code>smk_…${token.last4}</code>${isOwn && html` <span class="tag">this session</span>`}</dd></div>
<div class="wide"><dt>ID</dt><dd><code>${token.tokenId}</code></dd></div>
</dl></section>
${token.isValid && limitsSection(limits, sent, token.tokenId)}
${token.isValid && rotation(details, sent)}
${(token.isValid || details.descendants.length > 0) && revocation(details)}`;
}

/** Seconds after which a rotated token ends. */
const overlaps = { "86400": "In a day", "3600": "In an hour", "604800": "In a week", "0": "Now" };

/** The form has the id of the successor, so that it creates one however often it is sent. */
function rotation({ organizationId, token: { tokenId } }: TokenDetails, sent: SentForm): Html {
  return html`<section class="setting" aria-labelledby="rotate-title"><div class="intro"><h2 id="rotate-title">Rotate</h2>
<p class="aside">A new token with the same name, scopes, limits and expiry replaces this one. Until this one expires, both work, each with its own limits.</p></div>
<form class="form" method="post" action="/billing/tokens/rotate">
${organizationField(organizationId)}<input type="hidden" name="token" value="${tokenId}"><input type="hidden" name="id" value="${newId("tok")}">
${selectField(sent, { name: "ends", label: "This token expires", options: Object.entries(overlaps), value: "86400" })}
<button>Rotate</button>
</form></section>`;
}

/** POST /billing/tokens/rotate: shows the new token, only this once. */
export async function handleRotateForm(parts: TokenParts & { redis: Redis }, asked: FormRequest): Promise<void> {
  const { form, caller } = asked;
  const id = form.get("token") ?? "";
  const successor = tokenIdSchema.safeParse(form.get("id"));
  const refuse = async (status: number, ends: string) => {
    const sent = { values: form, problems: { ends } };
    parts.account.send(asked, status, await tokenView(parts.database, asked, { id, sent }));
  };
  const overlap = form.get("ends") ?? "";
  if (!successor.success || !Object.hasOwn(overlaps, overlap)) return refuse(400, "Choose one of these times.");
  if ((await countNewToken(parts.redis, caller)) !== undefined) return refuse(429, tooManyNewTokens);
  const made = await changeToken(parts, asked, id, async (transaction, changer, token) => {
    if (!token.isValid) return { refused: "This token has expired. Create another one." };
    const { name, dayLimitMils, monthLimitMils, expiresAt } = token;
    const limits = { dayMils: dayLimitMils, monthMils: monthLimitMils };
    const scopes = allScopes.filter((scope) => token.scopes.includes(scope));
    const terms = { tokenId: successor.data, parentId: caller.tokenId, scopes, expiresAt, ...limits };
    const issued = await issue(transaction, changer, { ...terms, name: name ?? undefined });
    if (!("token" in issued)) return issued;
    const rotated = { tokenId: id, expiresAt, successorId: issued.tokenId, inSeconds: Number(overlap) };
    return { issued, endedAt: await endToken(transaction, changer, rotated) };
  });
  if ("problems" in made) return refuse(400, Object.values(made.problems).join(" "));
  if ("refused" in made) return refuse(409, made.refused);
  const { issued, endedAt } = made;
  const note = html`It replaces <a href="/billing/tokens/${id}">the old one</a>, which ends on <time datetime="${endedAt.toISOString()}">${momentOf(endedAt)}</time>.`;
  parts.account.send(asked, 200, newTokenPage(issued, note));
}

function revocation({ organizationId, token, isOwn, descendants }: TokenDetails): Html {
  return html`<section class="setting" aria-labelledby="revoke-title"><div class="intro"><h2 id="revoke-title">Revoke</h2>
<p class="aside">For a token that leaked or is no longer used.</p></div>
<details><summary class="danger">Revoke “${nameOf(token)}”</summary>
<form id="revoke" method="post" action="/billing/tokens/revoke">
${organizationField(organizationId)}<input type="hidden" name="token" value="${token.tokenId}">
<p>Every API refuses the token within two seconds. This cannot be undone.${isOwn && " You are signed in with this token, so your session ends too."}</p>
${descendants.length > 0 && familyChoice(descendants)}<button class="danger">Revoke permanently</button>
</form></details></section>`;
}

/** Tokens outlive the one that created them, so a thief of that one may hold them too. */
function familyChoice(descendants: readonly AccountToken[]): Html {
  const links = descendants.map(
    ({ tokenId, name, last4 }) =>
      html`<li><a href="/billing/tokens/${tokenId}">${nameOf({ name })}</a> <code>smk_…${last4}</code></li>`,
  );
  return html`<p>This token created other tokens that are still valid:</p>
<ul>${links}</ul>
<p><label><input type="checkbox" name="children" value="revoke"> Revoke them too</label></p>
`;
}

/** POST /billing/tokens/limits. */
export async function handleTokenLimitsForm(parts: TokenParts, asked: FormRequest): Promise<void> {
  const id = asked.form.get("token") ?? "";
  const { change, problems } = readLimitChange(asked.form);
  const refuse = async (found: Record<string, string>) => {
    const sent = { values: asked.form, problems: found };
    parts.account.send(asked, 400, await tokenView(parts.database, asked, { id, sent }));
  };
  if (Object.keys(problems).length > 0) return refuse(problems);
  try {
    await changeToken(parts, asked, id, (transaction, changer) =>
      changeLimitsRecorded(transaction, changer, { owner: "token", id }, change),
    );
  } catch (error) {
    if (error instanceof DayLimitRequired) return refuse({ day: dayLimitRequired });
    if (!(error instanceof LimitsTooHigh)) throw error;
    return refuse(limitProblems(error.excesses, asked.caller.tokenId));
  }
  leadTo(asked.response, `/billing/tokens/${id}?saved`);
}

/** POST /billing/tokens/revoke. A person who revokes the token of their session is signed out. */
export async function handleRevokeForm(parts: TokenParts & { sessions: Sessions }, asked: FormRequest): Promise<void> {
  const id = asked.form.get("token") ?? "";
  const withDescendants = asked.form.get("children") === "revoke";
  const revoke = (transaction: Querying, changer: Changer) =>
    revokeFamilyRecorded(transaction, changer, { tokenId: id, withDescendants });
  const family = await changeToken(parts, asked, id, revoke, { isEnd: true });
  const revoked = [id, ...(withDescendants ? (family ?? []).map(({ tokenId }) => tokenId) : [])];
  const isOwn = revoked.includes(asked.caller.tokenId);
  if (isOwn) await parts.sessions.close(asked.request, asked.response);
  leadTo(asked.response, isOwn ? "/billing" : "/billing/tokens?revoked");
}

/** Changes one token of the caller's organization. @throws {CallerError} `not_found` for any other token. */
async function changeToken<Result>(
  { database, announce }: TokenParts,
  asked: FormRequest,
  id: string,
  change: (transaction: Querying, changer: Changer, token: AccountToken) => Promise<Result>,
  options?: { isEnd: boolean },
): Promise<Result> {
  const changeIt = async (transaction: Querying, changer: Changer) =>
    change(transaction, changer, await findToken(transaction, asked, id));
  const result = await changeAccount(database, asked, changeIt, options);
  await announce();
  return result;
}

/** @throws {CallerError} `not_found` for a token that the caller's organization does not have. */
async function findToken(database: Querying, { caller }: PageRequest, id: unknown): Promise<AccountToken> {
  const { success, data } = tokenIdSchema.safeParse(id);
  const token = success ? await readAccountToken(database, caller.organizationId, data) : undefined;
  if (!token) throw new CallerError("not_found");
  return token;
}
