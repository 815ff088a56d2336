import type { Redis } from "ioredis";
import { z } from "zod";
import type { Changer } from "../../../shared/audit/audit.ts";
import type { Database } from "../../../shared/database/pool.ts";
import type { Querying } from "../../../shared/database/transaction.ts";
import { CallerError } from "../../../shared/errors.ts";
import { newId, tokenId as tokenIdSchema } from "../../../shared/ids.ts";
import {
  countValidTokens,
  readAccountToken,
  readAccountTokens,
  readTokenUse,
  type TokenUse,
} from "../../tokens/account-tokens.ts";
import {
  type Caller,
  headerScopes,
  isErased,
  type Scope,
  scopes as allScopes,
} from "../../../shared/organizations/organizations.ts";
import { textProblem } from "../../../shared/query/query.ts";
import { issueRecorded } from "../../organizations/audited-changes.ts";
import { excessesOf, readFamilyMember } from "../../tokens/token-family.ts";
import type { AccountToken, IssuedToken, TokenTerms } from "../../tokens/tokens.ts";
import { type AccountView, organizationField, statusNotice } from "../frame/account-frame.ts";
import { type AccountHandlers, changeAccount, type FormRequest, type PageRequest } from "../frame/account-handlers.ts";
import { countRequest } from "../session/counted-window.ts";
import { dayLimitRequired, limitFields, limitProblems, readLimitFields } from "../settings/limits.ts";
import { newForm, problemOf, selectField, type SentForm, textField } from "../../pages/form.ts";
import { amount, count, dateOf, momentOf, searches } from "../../pages/format.ts";
import { html, type Html } from "../../pages/html.ts";

const validTokensMax = 100;
/** New tokens of an account in a day. Postgres keeps each forever, revoked or not. */
const newTokens = { keyPrefix: "pages:tokens:", requestsMax: 50, windowSeconds: 86_400 };

/** What the pages and forms of the tokens need. */
export interface TokenParts {
  account: AccountHandlers;
  database: Database;
  /** Whether the operator has opened a door, for whose address a token can be made. */
  hasDoors: boolean;
  /** Makes every API drop its cache of tokens. Best effort: the entries expire by themselves. */
  announce: () => Promise<void>;
}

/** GET /billing/tokens: the tokens of an organization, and the form for a new one. */
export async function writeTokens(parts: TokenParts, asked: PageRequest): Promise<AccountView> {
  const { revoked } = asked.request.query;
  return listView(parts, asked, newForm, statusNotice(revoked === undefined ? undefined : "Token revoked."));
}

async function listView(
  { database, hasDoors }: Pick<TokenParts, "database" | "hasDoors">,
  { caller: { organizationId, tokenId: ownTokenId } }: PageRequest,
  sent: SentForm,
  notice: Html | false = false,
): Promise<AccountView> {
  const [tokens, use, own] = await Promise.all([
    readAccountTokens(database, organizationId),
    readTokenUse(database, organizationId),
    readFamilyMember(database, ownTokenId),
  ]);
  const body = tokenListPage({ organizationId, ownTokenId, own, tokens, use, hasDoors }, sent, notice);
  return { path: "/billing/tokens", title: "Tokens", body };
}

/** POST /billing/tokens/create: shows the new token, only this once. */
export async function handleCreateForm(parts: TokenParts & { redis: Redis }, asked: FormRequest): Promise<void> {
  const { account, database, redis } = parts;
  const { terms, problems } = readTokenForm(asked.form);
  const limits = readLimitFields(asked.form);
  const refuse = async (status: number, found: Record<string, string>) =>
    account.send(asked, status, await listView(parts, asked, { values: asked.form, problems: found }));
  if (!terms || Object.keys(limits.problems).length > 0) return refuse(400, { ...problems, ...limits.problems });
  const retryAfterMs = await countNewToken(redis, asked.caller);
  if (retryAfterMs !== undefined) return refuse(429, { form: tooManyNewTokens });
  const { tokenId: parentId } = asked.caller;
  const made = await changeAccount(database, asked, (transaction, changer) =>
    issue(transaction, changer, { ...terms, parentId, ...limits.change }),
  );
  if ("problems" in made) return refuse(400, made.problems);
  if ("refused" in made) return refuse(409, { form: made.refused });
  account.send(asked, 200, newTokenPage(made));
}

/** Counts a new token of an organization. @returns undefined within the limit, else for how many milliseconds there is none. */
export const countNewToken = (redis: Redis, { organizationId }: Caller) =>
  countRequest(redis, newTokens, organizationId);

export const tooManyNewTokens = `An account can create at most ${newTokens.requestsMax} tokens a day. Try again tomorrow.`;

/**
 * Issues a token with its limits, within those of its parent, or returns why not. The organization's row stays locked, so that two
 * forms never count at the same time.
 */
export async function issue(
  transaction: Querying,
  changer: Changer,
  terms: TokenTerms & { tokenId: string; parentId: string; scopes: readonly Scope[] },
): Promise<IssuedToken | { refused: string } | { problems: Record<string, string> }> {
  const { organizationId } = changer;
  if (await isErased(transaction, organizationId)) throw new CallerError("unauthenticated");
  if (await readAccountToken(transaction, organizationId, terms.tokenId))
    return {
      refused:
        "This form was sent before, and its token was created then. The token cannot be shown again. If you did not copy it, revoke it and create another.",
    };
  if ((await countValidTokens(transaction, organizationId)) >= validTokensMax)
    return { refused: `An organization can have at most ${validTokensMax} valid tokens. Revoke one first.` };
  // It may have been revoked since the request began.
  const parent = await readFamilyMember(transaction, terms.parentId);
  if (!parent) throw new CallerError("unauthenticated");
  const problems = problemsOfTerms(terms, parent);
  if (Object.keys(problems).length > 0) return { problems };
  const issued = await issueRecorded(transaction, changer, organizationId, terms);
  if (!issued) throw new CallerError("unauthenticated");
  return issued;
}

interface TokenList {
  organizationId: string;
  /** The token of the session. */
  ownTokenId: string;
  /** The token of the session, whose expiry and limits bound the tokens that it creates; undefined if it was just removed. */
  own: AccountToken | undefined;
  tokens: readonly AccountToken[];
  use: TokenUse;
  hasDoors: boolean;
}

function tokenListPage(list: TokenList, sent: SentForm, notice: Html | false): Html {
  const { tokens, use } = list;
  const valid = tokens.filter(({ isValid }) => isValid);
  const ended = tokens.filter(({ isValid }) => !isValid);
  const problem = sent.problems.id ?? sent.problems.form;
  const period = use.isWhole ? "Last 30 days" : `Since ${dateOf(use.since)}`;
  return html`${notice}${problem !== undefined && html`<p class="notice warning" role="alert">${problem}</p>`}
<section>${table("Valid tokens", valid, list, period)}
${!use.isWhole && html`<p class="aside">Usage is counted from the newest 20,000 entries of the history.</p>`}</section>
<section aria-labelledby="new-title"><div class="head"><h2 id="new-title">New token</h2></div>
${tokenForm(list, sent)}</section>
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
<th scope="row"><a href="/billing/tokens/${tokenId}">${nameOf(token)}</a>${tokenId === ownTokenId && html` <span class="tag">this session</span>`}<code>smk_…${token.last4}</code>${token.isValid && html` <a class="aside" href="/billing/tokens/${tokenId}#revoke">Revoke<span class="hidden"> “${nameOf(token)}”</span></a>`}</th>
<td data-label="Scopes"><span>${scopes.map((scope) => html`<span class="tag">${scope}</span> `)}</span></td>
<td data-label="Last used">${lastUsedAt ? time(lastUsedAt) : "Never"}</td>
<td data-label="Expires"><span>${endOf(token)}</span></td>
<td data-label="Limits"><span>${limitsOf(token)}</span></td>
<td data-label="${period}" class="number"><span>${used ? html`${amount(used.netMils)} <span class="aside">${searches(used.charges)}</span>` : "–"}</span></td>
</tr>
`;
}

export const nameOf = ({ name }: Pick<AccountToken, "name">) => name ?? "Unnamed";

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

const nameLengthMax = 100;
/** Days after which a token may expire. */
const lifetimes = { "": "Never", "7": "In 7 days", "30": "In 30 days", "90": "In 90 days", "365": "In a year" };

/** The name of each scope, and what a token with it may do. */
const scopeLabels: Record<Scope, [name: string, rights: string]> = {
  search: [
    "Search",
    "POST /v1/serp/search, searches over MCP, and the playground with its own searches. Spends credit.",
  ],
  usage: ["Usage", "GET /v1/usage, and usage over MCP."],
  billing: ["Billing", "Sign in here, read everything, create and revoke tokens, set limits, add credit."],
  door: ["Door", "Searches at a door, with the token in the address. No other scope, and a daily limit."],
};

/** The form has the id of the token to be created, so that it creates one token however often it is sent. */
function tokenForm({ organizationId, own: session, hasDoors }: TokenList, sent: SentForm): Html {
  const { values, problems } = sent;
  const isNew = !values.has("id");
  const chosen = values.getAll("scope");
  const isChosen = (scope: Scope) => (isNew ? ["search", "usage"].includes(scope) : chosen.includes(scope));
  const options = lifetimesOf(session).toSorted(([first], [second]) => Number(first) - Number(second));
  return html`<form class="card form columns" method="post" action="/billing/tokens/create">
${organizationField(organizationId)}
<input type="hidden" name="id" value="${newId("tok")}">
<div>
${textField(sent, { name: "name", label: "Name", hint: "The program or person that uses it.", attributes: html` maxlength="${nameLengthMax}" required` })}
<fieldset class="choices"${problems.scope !== undefined && html` aria-describedby="scope-problem"`}><legend>Scopes</legend>
${(hasDoors ? allScopes : headerScopes).map(
  (scope) =>
    html`<label><input type="checkbox" name="scope" value="${scope}"${isChosen(scope) && html` checked`}> <span><strong>${scopeLabels[scope][0]}</strong> <span class="aside">${scopeLabels[scope][1]}</span></span></label>
`,
)}${problemOf(problems, "scope")}</fieldset>
</div>
<div>
${selectField(sent, { name: "expires", label: "Expires", options, value: "" })}
${limitFields(sent, session ?? { dayLimitMils: null, monthLimitMils: null })}
</div>
<button>Create token</button>
</form>`;
}

/** The lifetimes that end no later than the session's token. A token without a lifetime of its own expires with that token. */
function lifetimesOf(session: AccountToken | undefined): [days: string, label: string][] {
  const { expiresAt = null } = session ?? {};
  if (!expiresAt) return Object.entries(lifetimes);
  const others = Object.entries(lifetimes).filter(([days]) => days !== "" && endOfDays(Number(days)) <= expiresAt);
  return [["", `With your current token, on ${dateOf(expiresAt)}`], ...others];
}

const endOfDays = (days: number) => new Date(Date.now() + days * 86_400_000);

/** Problems of a new token's terms, by field; none if they are within those of the session's token. */
function problemsOfTerms(
  terms: TokenTerms & { scopes: readonly Scope[] },
  session: AccountToken,
): Record<string, string> {
  const { expiresInDays, expiresAt: end, scopes, dayMils } = terms;
  const { expiresAt } = session;
  const problems: Record<string, string> = {};
  const isOfDoor = scopes.includes("door");
  if (isOfDoor && scopes.length > 1) problems["scope"] = "A token for the address of a door can have no other scope.";
  if (isOfDoor && dayMils === null) problems["day"] = dayLimitRequired;
  if (expiresAt && expiresInDays !== undefined && endOfDays(expiresInDays) > expiresAt)
    problems["expires"] = `Choose a time before ${dateOf(expiresAt)}, when your current token expires.`;
  // Of a rotated token. It would silently expire with the session's token.
  if (expiresAt && end !== undefined && (end === null || end > expiresAt))
    problems["expires"] =
      `Your current token expires on ${momentOf(expiresAt)}, before this one. Sign in with a token that lasts as long as this one.`;
  const excesses = excessesOf({ dayLimitMils: 0, monthLimitMils: 0 }, terms, session);
  return { ...limitProblems(excesses, session.tokenId), ...problems };
}

const tokenFields = z.object({
  id: tokenIdSchema,
  name: z
    .string()
    .trim()
    .max(nameLengthMax)
    .refine((name) => textProblem(name) === undefined),
  scope: z
    .array(z.enum(allScopes))
    .min(1)
    .transform((chosen) => allScopes.filter((scope) => chosen.includes(scope))),
  expires: z
    .string()
    .refine((days) => Object.hasOwn(lifetimes, days))
    .transform((days) => (days === "" ? undefined : Number(days))),
});

const expected: Record<string, string> = {
  id: "The form is incomplete. Reload the page and try again.",
  name: `Enter a name of 1 to ${nameLengthMax} visible characters, without control characters.`,
  scope: "Choose at least one scope.",
  expires: "Choose one of these times.",
};

/** Reads the form, without its limits. @returns the terms, or their problems. */
function readTokenForm(form: URLSearchParams) {
  const { data, error } = tokenFields.safeParse({ ...Object.fromEntries(form), scope: form.getAll("scope") });
  const problems: Record<string, string> = {};
  for (const { path } of error?.issues ?? []) problems[String(path[0])] = expected[String(path[0])] ?? "";
  const terms = data && { tokenId: data.id, name: data.name, scopes: data.scope, expiresInDays: data.expires };
  return { terms, problems };
}

const list = new Intl.ListFormat("en-GB");

/** The only page that ever shows a token. The copy button appears with the script. @param note what became of another token. */
export function newTokenPage({ token, tokenId, name, scopes, expiresAt }: IssuedToken, note?: Html): AccountView {
  return {
    path: "/billing/tokens",
    title: "Copy the token now",
    body: html`<section class="card form" aria-label="New token">
<p><strong>${name ?? "The token"}</strong> has the ${scopes.length === 1 ? "scope" : "scopes"} ${list.format(scopes)}. It ${expiresAt ? html`expires on ${dateOf(expiresAt)}` : "never expires"}. ${note}</p>
<p class="copy"><code class="secret" id="token" tabindex="0">${token}</code><button type="button" class="plain" data-copy="token" hidden>Copy</button></p>
<p class="notice warning">This token is shown only now. Serpmill stores a hash, which cannot be turned back into the token.</p>
<p class="row"><a class="button primary" href="/billing/tokens">I have copied it</a> <a class="button" href="/billing/tokens/${tokenId}">Limits and usage</a></p>
</section>`,
  };
}
