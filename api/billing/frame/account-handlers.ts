import type { Request, Response } from "express";
import type { Redis } from "ioredis";
import { type Changer, countChanges } from "../../../shared/audit/audit.ts";
import type { Database } from "../../../shared/database/pool.ts";
import { inTransaction, type Querying } from "../../../shared/database/transaction.ts";
import { CallerError } from "../../../shared/errors.ts";
import { type Caller, lockAccount, showOrganization } from "../../../shared/organizations/organizations.ts";
import { accountFrame, type AccountView, narrowPage } from "./account-frame.ts";
import { takePageRequest } from "../session/counted-window.ts";
import { isCrossSiteNavigation, rejectCrossOrigin } from "../session/csrf.ts";
import {
  type Access,
  onlyTokenOf,
  readSignedIn,
  requireSession,
  type Sessions,
  type SignedIn,
} from "../session/sessions.ts";
import { onlySearches, scopeMissing, signInPage } from "../session/sign-in.ts";
import { orPostgresUnavailable } from "../../datastore-unavailable.ts";
import { requestScopeOf } from "../../http/request-scope.ts";
import { html } from "../../pages/html.ts";
import type { PageSender } from "../../pages/page-sender.ts";
import { readForm } from "../../pages/form.ts";

/** A request of a signed-in person. It has taken one request of the page window. */
export interface AccountRequest extends SignedIn {
  request: Request;
  response: Response;
}

/** A page view, with the name of the organization. */
export interface PageRequest extends AccountRequest {
  name: string;
}

/** A form from our own page, for the organization that the page showed. */
export interface FormRequest extends PageRequest {
  form: URLSearchParams;
}

export type Handler = (request: Request, response: Response) => Promise<void>;

interface AccountParts {
  sessions: Sessions;
  redis: Redis;
  pages: PageSender;
  database: Database;
}

/**
 * Wraps the handlers of the account pages: session, page window, protection of forms, failures of Postgres, and frame. A page is
 * only for tokens with the scope `billing`, unless its access is `searches`: it then shows a token without that scope nothing but
 * its own searches.
 */
export class AccountHandlers {
  readonly #parts: AccountParts;

  constructor(parts: AccountParts) {
    this.#parts = parts;
  }

  /** A page by GET. Without a session it is the sign-in form, which leads back to the same address. */
  page<Parts>(
    write: (parts: Parts, asked: PageRequest) => Promise<AccountView>,
    parts: Parts,
    access: Access = "account",
  ): Handler {
    const { sessions, redis, pages, database } = this.#parts;
    return async (request, response) => {
      const cookies = sessions.countCookies(request);
      if (cookies === 0 && isCrossSiteNavigation(request)) return reload(pages, request, response);
      const signedIn = await readSignedIn(sessions, request, response, { access });
      if (signedIn instanceof CallerError) {
        const body = signInPage({ next: addressOf(request), problem: problemOf(cookies, signedIn) });
        return pages.send(request, response, { status: 200, title: "Sign in", body });
      }
      await takePageRequest(redis, signedIn.caller);
      const writing = readName(database, signedIn.caller).then(async (name) => {
        const asked = { ...signedIn, request, response, name };
        this.send(asked, 200, await write(parts, asked));
      });
      await orPostgresUnavailable(writing);
    };
  }

  /** A download by GET. @throws {CallerError} `unauthenticated`, `rate_limited`. */
  download<Parts>(send: (parts: Parts, asked: AccountRequest) => Promise<void>, parts: Parts): Handler {
    const { sessions, redis } = this.#parts;
    return async (request, response) => {
      const signedIn = await requireSession(sessions, request, response, "account");
      await takePageRequest(redis, signedIn.caller);
      await orPostgresUnavailable(send(parts, { ...signedIn, request, response }));
    };
  }

  /**
   * A form by POST, with `organizationField`. @throws {CallerError} `bad_request` for a form of another site, or of a page that was
   * opened for another organization; `unauthenticated`, `rate_limited`.
   */
  form<Parts>(
    handle: (parts: Parts, asked: FormRequest) => Promise<void>,
    parts: Parts,
    access: Access = "account",
  ): Handler {
    const { sessions, redis, database } = this.#parts;
    return async (request, response) => {
      rejectCrossOrigin(request, response);
      const readSession = () => requireSession(sessions, request, response, access);
      const [signedIn, form] = await requestScopeOf(response).receive(readSession, () => readForm(request));
      // The browser's session may have changed since the page was opened, even to one that an attacker planted.
      if (form.get("organization") !== signedIn.caller.organizationId)
        throw new CallerError("bad_request", { reason: "other_organization" });
      // Counts like a page view, so that a script cannot send forms without limit.
      await takePageRequest(redis, signedIn.caller);
      const handling = readName(database, signedIn.caller).then((name) =>
        handle(parts, { ...signedIn, request, response, form, name }),
      );
      await orPostgresUnavailable(handling);
    };
  }

  /** Sends a page in its frame, also as the answer to a form. */
  send({ request, response, caller, name }: PageRequest, status: number, view: AccountView): void {
    const holder = { name, organizationId: caller.organizationId, hasAccount: !onlyTokenOf(caller) };
    const body = accountFrame(holder, view);
    this.#parts.pages.send(request, response, { status, title: view.title, body });
  }
}

async function readName(database: Database, { organizationId }: Caller): Promise<string> {
  return (await showOrganization(database, organizationId))?.name ?? organizationId;
}

/** The path and query of a request, whose request line may have an absolute URL, even an invalid one. */
function addressOf({ originalUrl, path }: Request): string {
  return `${path}${URL.parse(originalUrl, "http://billing")?.search ?? ""}`;
}

/**
 * A browser that follows a link from another site, such as Stripe's checkout, withholds a SameSite=Strict cookie. A page of ours that
 * reloads itself is a same-site navigation, with the cookie.
 */
function reload(pages: PageSender, request: Request, response: Response): void {
  const target = addressOf(request);
  response.setHeader("Refresh", `0; url=${target}`);
  // The link is for a browser that does not reload by itself.
  const body = narrowPage(html`<p><a href="${target}">Continue to your account</a></p>`);
  pages.send(request, response, { status: 200, title: "Account", body });
}

/** Why a browser with this many session cookies is not signed in; undefined without any. */
function problemOf(cookies: number, { details }: CallerError): string | undefined {
  if (cookies === 0) return undefined;
  if (details.reason === "scope") return scopeMissing;
  if (details.reason === "only_searches") return onlySearches;
  return cookies === 1
    ? "Your session has ended. Sign in again."
    : "Your browser sent more than one session cookie, so none was used. Delete the cookies of this site, then sign in again.";
}

/** Leads the browser from a form to a page of ours, or to Stripe's. */
export function leadTo(response: Response, address: string): void {
  response.writeHead(303, { Location: address }).end();
}

/** The audit trail keeps each change forever, so an account must not make unlimited changes. */
const changesPerDayMax = 200;
const retryAfterMs = 3_600_000;

/**
 * Changes an account and writes the entry of the audit trail, in one transaction.
 * @param options.isEnd whether it only ends what an earlier change began, such as a token. This limit never refuses that: the changes
 *   of a leaked token must not keep its owner from revoking it. The page window still may.
 * @throws {CallerError} `rate_limited`, reason `changes`, after 200 changes in 24 hours.
 */
export async function changeAccount<Result>(
  database: Database,
  { response, caller: { organizationId, tokenId } }: FormRequest,
  change: (transaction: Querying, changer: Changer) => Promise<Result>,
  { isEnd = false } = {},
): Promise<Result> {
  const { requestId, address } = requestScopeOf(response);
  return inTransaction(database, async (transaction) => {
    // Concurrent changes are counted one after the other.
    await lockAccount(transaction, organizationId);
    if (!isEnd && (await countChanges(transaction, organizationId)) >= changesPerDayMax)
      throw new CallerError("rate_limited", { reason: "changes", limit: changesPerDayMax, retryAfterMs });
    return change(transaction, { actor: { kind: "account", tokenId, address }, organizationId, requestId });
  });
}
