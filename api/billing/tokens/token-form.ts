import { z } from "zod";
import { newId } from "../../../shared/ids.ts";
import { type Scope, scopes } from "../../../shared/organizations/scopes.ts";
import type { LimitChange } from "../../../shared/organizations/limits.ts";
import { excessesOf, type FamilyMember } from "../../../shared/organizations/token-family.ts";
import type { TokenTerms } from "../../../shared/organizations/tokens.ts";
import { dateOf } from "../../pages/format.ts";
import { problemOf, type SentForm, textField } from "../../pages/form-fields.ts";
import { html, type Html } from "../../pages/html.ts";
import { organizationField } from "../frame/account-frame.ts";
import { limitFields, limitProblems } from "../settings/limits.ts";

/** The form by which an account makes a token. */

const nameLengthMax = 100;
/** Days after which a token may expire. */
const lifetimes = { "": "Never", "7": "In 7 days", "30": "In 30 days", "90": "In 90 days", "365": "In a year" };

export const tokenId = z.string().regex(/^tok_[0-7][0-9a-hjkmnp-tv-z]{25}$/);

/** What a scope is called, and what a token with it may do. */
const scopeLabels: Record<Scope, [name: string, rights: string]> = {
  search: ["Search", "POST /v1/serp/search and the same over MCP. It spends credit."],
  usage: ["Usage", "GET /v1/usage and the same over MCP."],
  billing: ["Account", "Sign in here, read everything, make and revoke tokens, set limits, add credit."],
};

/** The form; its id is that of the token to be made, so that the same form makes one token however often it is sent. */
export function tokenForm(organizationId: string, sent: SentForm, session: FamilyMember | undefined): Html {
  const { values, problems } = sent;
  const isNew = !values.has("id");
  const chosen = values.getAll("scope");
  const isChosen = (scope: Scope) => (isNew ? scope !== "billing" : chosen.includes(scope));
  const lifetime = values.get("expires") ?? "";
  return html`<form class="card form columns" method="post" action="/billing/tokens/create">
${organizationField(organizationId)}
<input type="hidden" name="id" value="${values.get("id") ?? newId("tok")}">
<div>
${textField(sent, { name: "name", label: "Name", hint: "What people know it by: the program or the person that uses it.", attributes: html` maxlength="${nameLengthMax}" required` })}
<fieldset class="choices"${problems.scope !== undefined && html` aria-describedby="scope-problem"`}><legend>Scopes</legend>
${scopes.map(
  (scope) =>
    html`<label><input type="checkbox" name="scope" value="${scope}"${isChosen(scope) && html` checked`}> <span><strong>${scopeLabels[scope][0]}</strong> <span class="aside">${scopeLabels[scope][1]}</span></span></label>
`,
)}${problemOf(problems, "scope")}</fieldset>
</div>
<div>
<div class="field"><label for="expires">Expires</label>
<select id="expires" name="expires"${problems.expires !== undefined && html` aria-invalid="true" aria-describedby="expires-problem"`}>
${lifetimesOf(session)
  .toSorted(([first], [second]) => Number(first) - Number(second))
  .map(
    ([days, label]) => html`<option value="${days}"${days === lifetime && html` selected`}>${label}</option>\n`,
  )}</select>
${problemOf(problems, "expires")}</div>
${limitFields(sent, session ?? { dayLimitMils: null, monthLimitMils: null })}
</div>
<button>Create token</button>
</form>`;
}

/** The lifetimes that end no later than the token of the session, with which a token expires that has none of its own. */
function lifetimesOf(session: FamilyMember | undefined): [days: string, label: string][] {
  const { expiresAt = null } = session ?? {};
  if (!expiresAt) return Object.entries(lifetimes);
  const others = Object.entries(lifetimes).filter(([days]) => days !== "" && endOfDays(Number(days)) <= expiresAt);
  return [["", `With the token of this session, on ${dateOf(expiresAt)}`], ...others];
}

const endOfDays = (days: number) => new Date(Date.now() + days * 86_400_000);

/** What is wrong with the terms of a token that the token of a session makes, by field; nothing if they are within its own. */
export function problemsOfTerms(
  { expiresInDays }: TokenTerms,
  limits: LimitChange,
  session: FamilyMember,
): Record<string, string> {
  const { expiresAt } = session;
  const problems: Record<string, string> = {};
  if (expiresAt && expiresInDays !== undefined && endOfDays(expiresInDays) > expiresAt)
    problems["expires"] =
      `Expected a time until ${dateOf(expiresAt)}, when the token expires that you are signed in with.`;
  const excesses = excessesOf({ dayLimitMils: 0, monthLimitMils: 0 }, limits, session);
  return { ...problems, ...limitProblems(excesses, session.tokenId) };
}

const tokenFields = z.object({
  id: tokenId,
  // Postgres has no text for NUL.
  name: z
    .string()
    .trim()
    .min(1)
    .max(nameLengthMax)
    .regex(/^\P{Cc}*$/u),
  scope: z
    .array(z.enum(scopes))
    .min(1)
    .transform((chosen) => scopes.filter((scope) => chosen.includes(scope))),
  expires: z
    .string()
    .refine((days) => Object.hasOwn(lifetimes, days))
    .transform((days) => (days === "" ? undefined : Number(days))),
});

const expected: Record<string, string> = {
  id: "The form is incomplete. Reload the page and try again.",
  name: `Expected a name of 1 to ${nameLengthMax} characters, none of them a control character.`,
  scope: "Choose at least one thing that it may do.",
  expires: "Choose one of the times.",
};

/** Reads the form, without its limits. @returns the terms, or what is wrong. */
export function readTokenForm(form: URLSearchParams) {
  const { data, error } = tokenFields.safeParse({ ...Object.fromEntries(form), scope: form.getAll("scope") });
  const problems: Record<string, string> = {};
  for (const { path } of error?.issues ?? []) problems[String(path[0])] = expected[String(path[0])] ?? "";
  const terms = data && { tokenId: data.id, name: data.name, scopes: data.scope, expiresInDays: data.expires };
  return { terms, problems };
}
