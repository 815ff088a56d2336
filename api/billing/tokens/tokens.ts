import type { Redis } from "ioredis";
import {
  type AccountToken,
  countValidTokens,
  readAccountToken,
  readAccountTokens,
  readTokenUse,
} from "../../../shared/organizations/account-tokens.ts";
import type { Database } from "../../../shared/database/pool.ts";
import type { Querying } from "../../../shared/database/transaction.ts";
import { CallerError } from "../../../shared/errors.ts";
import { readOwnLimits } from "../../../shared/organizations/limits.ts";
import { isErased } from "../../../shared/organizations/organizations.ts";
import {
  type Change,
  changeLimitsRecorded,
  issueRecorded,
  revokeFamilyRecorded,
} from "../../../shared/organizations/recorded-changes.ts";
import { LimitsTooHigh, readDescendants, readFamilyMember } from "../../../shared/organizations/token-family.ts";
import type { Changer } from "../../../shared/webhooks/recorded-changes.ts";
import type { IssuedToken, TokenTerms } from "../../../shared/organizations/tokens.ts";
import { orPostgresUnavailable } from "../../datastore-unavailable.ts";
import { newForm, type SentForm } from "../../pages/form-fields.ts";
import { html, type Html } from "../../pages/html.ts";
import type { AccountView } from "../frame/account-frame.ts";
import type { AccountHandlers, FormRequest, PageRequest } from "../frame/account-handlers.ts";
import { CountedWindow } from "../session/counted-window.ts";
import type { Sessions } from "../session/sessions.ts";
import { changeAccount } from "../frame/account-change.ts";
import { limitProblems, readLimitFields } from "../settings/limits.ts";
import { problemsOfTerms, readTokenForm, tokenId } from "./token-form.ts";
import { nameOf, tokenListPage } from "./token-list-page.ts";
import { tokenPage } from "./token-page.ts";
import { newTokenPage } from "./new-token-page.ts";

/** Valid tokens that an organization may have before its account makes another. */
const validTokensMax = 100;
/** Tokens that an account makes in a day: each stays in Postgres for ever, revoked or not. */
const newTokensMax = 50;
const newTokensWindowSeconds = 86_400;

interface TokenParts {
  account: AccountHandlers;
  sessions: Sessions;
  database: Database;
  redis: Redis;
  /** Makes every API drop its cache of tokens. It is best effort: the entries expire by themselves. */
  announce: () => Promise<void>;
}

/** The pages and forms of an organization's tokens. */
export class AccountTokens {
  readonly #parts: TokenParts;
  readonly #window: CountedWindow;

  constructor(parts: TokenParts) {
    this.#parts = parts;
    const limits = { requestsMax: newTokensMax, windowSeconds: newTokensWindowSeconds };
    this.#window = new CountedWindow(parts.redis, { keyPrefix: "pages:tokens:", ...limits });
  }

  /** GET /billing/tokens. */
  readonly list = async (asked: PageRequest): Promise<AccountView> => {
    const { revoked } = asked.request.query;
    const notice = revoked !== undefined && html`<p class="notice" role="status">The token is revoked.</p>`;
    return this.#listView(asked, newForm, notice);
  };

  /** GET /billing/tokens/:tokenId. */
  readonly show = async (asked: PageRequest): Promise<AccountView> => {
    const saved = asked.request.query.saved !== undefined;
    const notice = saved && html`<p class="notice" role="status">The limits are saved.</p>`;
    return this.#tokenView(asked, asked.request.params["tokenId"], newForm, notice);
  };

  /** POST /billing/tokens/create: shows the new token, this once. */
  readonly create = async (asked: FormRequest): Promise<void> => {
    const { account } = this.#parts;
    const { terms, problems } = readTokenForm(asked.form);
    const limits = readLimitFields(asked.form);
    const refuse = async (status: number, found: Record<string, string>) => {
      const sent = { values: asked.form, problems: found };
      account.send(asked, status, await this.#listView(asked, sent));
    };
    if (!terms || Object.keys(limits.problems).length > 0) return refuse(400, { ...problems, ...limits.problems });
    const retryAfterMs = await this.#window.take(asked.caller.organizationId);
    if (retryAfterMs !== undefined)
      return refuse(429, { form: `An account makes at most ${newTokensMax} tokens a day. Try again tomorrow.` });
    const { tokenId: parentId } = asked.caller;
    const made = await changeAccount(this.#parts.database, asked, (transaction, changer) =>
      issue(transaction, changer, { ...terms, parentId }, limits.change),
    );
    if ("problems" in made) return refuse(400, made.problems);
    if ("refused" in made) return refuse(409, { form: made.refused });
    account.send(asked, 200, newTokenPage(made));
  };

  /** POST /billing/tokens/limits. */
  readonly limit = async (asked: FormRequest): Promise<void> => {
    const id = asked.form.get("token") ?? "";
    const { change, problems } = readLimitFields(asked.form);
    const refuse = async (found: Record<string, string>) => {
      const view = await this.#tokenView(asked, id, { values: asked.form, problems: found });
      this.#parts.account.send(asked, 400, view);
    };
    if (Object.keys(problems).length > 0) return refuse(problems);
    try {
      await this.#change(asked, id, (transaction, changer) =>
        changeLimitsRecorded(transaction, changer, { owner: "token", id }, change),
      );
    } catch (error) {
      if (!(error instanceof LimitsTooHigh)) throw error;
      return refuse(limitProblems(error.excesses, asked.caller.tokenId));
    }
    asked.response.writeHead(303, { Location: `/billing/tokens/${id}?saved` }).end();
  };

  /** POST /billing/tokens/revoke. A person who revokes the token of their session is signed out. */
  readonly revoke = async (asked: FormRequest): Promise<void> => {
    const id = asked.form.get("token") ?? "";
    const withDescendants = asked.form.get("children") === "revoke";
    const family = await this.#change(asked, id, (transaction, changer) =>
      revokeFamilyRecorded(transaction, changer, { tokenId: id, withDescendants }),
    );
    const revoked = [id, ...(withDescendants ? (family ?? []).map(({ tokenId: revokedId }) => revokedId) : [])];
    const isOwn = revoked.includes(asked.caller.tokenId);
    if (isOwn) await this.#parts.sessions.close(asked.request, asked.response);
    asked.response.writeHead(303, { Location: isOwn ? "/billing" : "/billing/tokens?revoked" }).end();
  };

  /** Changes one token of the caller's organization. @throws {CallerError} `not_found` for any other token. */
  async #change<Result>(
    asked: FormRequest,
    id: string,
    change: (transaction: Querying, changer: Change) => Promise<Result>,
  ): Promise<Result> {
    const result = await changeAccount(this.#parts.database, asked, async (transaction, changer) => {
      await findToken(transaction, asked, id);
      return change(transaction, changer);
    });
    await this.#parts.announce();
    return result;
  }

  async #listView({ caller }: PageRequest, sent: SentForm, notice: Html | false = false): Promise<AccountView> {
    const { organizationId, tokenId: ownTokenId } = caller;
    const { database } = this.#parts;
    const read = Promise.all([
      readAccountTokens(database, organizationId),
      readTokenUse(database, organizationId),
      readFamilyMember(database, ownTokenId),
    ]);
    const [tokens, use, own] = await orPostgresUnavailable(read);
    const body = tokenListPage({ organizationId, ownTokenId, own, tokens, use }, sent, notice);
    return { path: "/billing/tokens", title: "Tokens", body };
  }

  async #tokenView(asked: PageRequest, id: unknown, sent: SentForm, notice?: Html | false): Promise<AccountView> {
    const { organizationId, tokenId: ownTokenId } = asked.caller;
    const { database } = this.#parts;
    const token = await orPostgresUnavailable(findToken(database, asked, id));
    const read = Promise.all([
      readOwnLimits(database, "token", token.tokenId),
      readTokenUse(database, organizationId),
      readDescendants(database, token.tokenId),
    ]);
    const [limits, use, descendants] = await orPostgresUnavailable(read);
    if (!limits) throw new CallerError("not_found");
    const details = { organizationId, isOwn: token.tokenId === ownTokenId, token, limits, use, descendants };
    const above = { path: "/billing/tokens", label: "All tokens" };
    return { path: "/billing/tokens", title: nameOf(token), above, body: tokenPage(details, sent, notice) };
  }
}

/** @throws {CallerError} `not_found` for a token that the caller's organization does not have. */
async function findToken(database: Querying, { caller }: PageRequest, id: unknown): Promise<AccountToken> {
  const { success, data } = tokenId.safeParse(id);
  const token = success ? await readAccountToken(database, caller.organizationId, data) : undefined;
  if (!token) throw new CallerError("not_found");
  return token;
}

/** Issues a token with its limits, within those of its parent, or says why not. The row of the organization stays locked, so that two forms never count at once. */
async function issue(
  transaction: Querying,
  changer: Changer,
  terms: TokenTerms & { tokenId: string; parentId: string },
  limits: { dayMils: number | null; monthMils: number | null },
): Promise<IssuedToken | { refused: string } | { problems: Record<string, string> }> {
  const { organizationId } = changer;
  if (await isErased(transaction, organizationId)) throw new CallerError("unauthenticated");
  if (await readAccountToken(transaction, organizationId, terms.tokenId))
    return {
      refused:
        "This form was sent before, and the token was created then. It cannot be shown again: if you did not copy it, revoke it and create another.",
    };
  if ((await countValidTokens(transaction, organizationId)) >= validTokensMax)
    return { refused: `An organization has at most ${validTokensMax} valid tokens. Revoke one first.` };
  // It may have been revoked since the request began.
  const parent = await readFamilyMember(transaction, terms.parentId);
  if (!parent) throw new CallerError("unauthenticated");
  const problems = problemsOfTerms(terms, limits, parent);
  if (Object.keys(problems).length > 0) return { problems };
  const issued = await issueRecorded(transaction, changer, organizationId, terms);
  if (!issued) throw new CallerError("unauthenticated");
  const { tokenId: id } = issued;
  if (limits.dayMils !== null || limits.monthMils !== null)
    await changeLimitsRecorded(transaction, changer, { owner: "token", id }, limits);
  return issued;
}
