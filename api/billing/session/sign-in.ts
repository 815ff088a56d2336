import { hash } from "node:crypto";
import type { Request, Response } from "express";
import type { Redis } from "ioredis";
import ipaddr from "ipaddr.js";
import { recordAudit } from "../../../shared/audit/audit.ts";
import type { Database } from "../../../shared/database/pool.ts";
import { CallerError } from "../../../shared/errors.ts";
import type { Log } from "../../../shared/log.ts";
import type { Metrics } from "../../../shared/metrics.ts";
import type { Caller } from "../../../shared/organizations/organizations.ts";
import { hashToken, isTokenShaped } from "../../tokens/tokens.ts";
import { narrowPage } from "../frame/account-frame.ts";
import { countRequest, takePageRequest, windowNameOf } from "./counted-window.ts";
import { rejectCrossOrigin } from "./csrf.ts";
import { onlyTokenOf, readSignedIn, type Sessions } from "./sessions.ts";
import { redeemSignInCode, signInCodeMinutes } from "./sign-in-codes.ts";
import { orPostgresUnavailable } from "../../datastore-unavailable.ts";
import { requestScopeOf } from "../../http/request-scope.ts";
import { html, type Html } from "../../pages/html.ts";
import type { PageSender } from "../../pages/page-sender.ts";
import { readForm } from "../../pages/form.ts";

/**
 * POST /billing/sign-in: exchanges a token, or a code that the page's script found in the address, for a session. All invalid
 * tokens get the same answer; a valid one without the scopes `billing` and `search` gets another.
 */
export function handleSignIn(parts: {
  sessions: Sessions;
  pages: PageSender;
  redis: Redis;
  database: Database;
  metrics: Pick<Metrics, "signIns">;
}) {
  const { sessions, pages, redis, database, metrics } = parts;
  return async (request: Request, response: Response) => {
    rejectCrossOrigin(request, response);
    const sendForm = (status: number, problem: string, next = overviewPath) =>
      pages.send(request, response, { status, title: "Sign in", body: signInPage({ next, problem }) });

    if ((await countRequest(redis, ofNetwork, networkOf(request.ip))) !== undefined) {
      metrics.signIns.inc({ outcome: "limited" });
      response.setHeader("Retry-After", ofNetwork.windowSeconds);
      return sendForm(429, "Too many sign-in attempts from your network. Try again in a minute.");
    }
    const form = await readForm(request);
    const next = nextOf(form);
    const code = form.get("code");
    const tokenHash = code === null ? hashOf(form.get("token") ?? "") : await redeemSignInCode(redis, code);
    const caller = tokenHash
      ? await sessions.callerOf({ tokenHash }, response, "searches")
      : new CallerError("unauthenticated");
    if (!tokenHash || caller instanceof CallerError) {
      metrics.signIns.inc({ outcome: "refused" });
      requestScopeOf(response).logFields.outcome = "refused";
      response.setHeader("WWW-Authenticate", "Bearer");
      const isValid = caller instanceof CallerError && caller.details.reason === "scope";
      return sendForm(401, isValid ? scopeMissing : code === null ? tokenInvalid : linkInvalid, next);
    }
    // Limits the sessions of an organization in Redis, however many networks they come from.
    await takePageRequest(redis, caller);
    // A token beyond its own limit does not use up its organization's.
    const overTokenMs = await countRequest(redis, ofToken, caller.tokenId);
    const overMs = overTokenMs ?? (await countRequest(redis, ofOrganization, windowNameOf(caller)));
    if (overMs !== undefined) {
      metrics.signIns.inc({ outcome: "limited" });
      response.setHeader("Retry-After", Math.ceil(overMs / 1_000));
      return sendForm(429, overTokenMs === undefined ? tooManyOfOrganization : tooManyOfToken, next);
    }
    // The audit entry first: if the process dies in between, the entry names a session that was never used.
    await orPostgresUnavailable(recordSession(database, response, { action: "session.opened", caller }));
    metrics.signIns.inc({ outcome: "signed_in" });
    await sessions.open(request, response, { tokenHash, organizationId: caller.organizationId });
    const isOpen = onlyTokenOf(caller) === undefined || ofSearches.test(next);
    response.writeHead(303, { Location: isOpen ? next : playgroundPath }).end();
  };
}

const hashOf = (token: string) => (isTokenShaped(token.trim()) ? hashToken(token.trim()).toString("hex") : undefined);

const tokenInvalid = "This token is not valid. It may be mistyped, expired or revoked.";
const linkInvalid = `This link has been used, or is older than ${signInCodeMinutes} minutes. Sign in with the token.`;

const tooManyOfToken = "This token has signed in too often today. Use another token, or try again tomorrow.";
const tooManyOfOrganization = "Your organization has signed in too often today. Try again tomorrow.";
const overviewPath = "/billing";
const playgroundPath = "/playground";
/** The pages that a token without the scope `billing` opens. */
const ofSearches = /^\/(playground|billing\/searches)($|[/?])/;
// A path of ours, without characters that could make it another host or a new line.
const ownAddress = /^\/(?:billing|playground)(?:\/\w[\w.-]*)*(?:\?[\w.=&%+-]*)?$/;

/** The page that the person wanted before the sign-in. Any address that is not ours leads to the overview. */
function nextOf(form: URLSearchParams): string {
  const next = form.get("next") ?? "";
  return ownAddress.test(next) ? next : overviewPath;
}

/** POST /billing/sign-out: ends the session, whether or not Postgres can record it. */
export function handleSignOut(parts: { sessions: Sessions; database: Database; log: Log }) {
  const { sessions, database, log } = parts;
  return async (request: Request, response: Response) => {
    rejectCrossOrigin(request, response);
    const signedIn = await readSignedIn(sessions, request, response, { access: "searches", presence: "idle" }).catch(
      () => undefined,
    );
    const isEnded = await sessions.close(request, response);
    // One entry for each session, however many requests end it.
    if (isEnded && signedIn && !(signedIn instanceof CallerError)) {
      await recordSession(database, response, { action: "session.closed", caller: signedIn.caller }).catch(
        (error: unknown) => log.warn({ err: error }, "a sign-out is missing in the audit trail"),
      );
    }
    response.writeHead(303, { Location: overviewPath }).end();
  };
}

function recordSession(
  database: Database,
  response: Response,
  { action, caller }: { action: "session.opened" | "session.closed"; caller: Caller },
): Promise<void> {
  const { requestId, address } = requestScopeOf(response);
  const { organizationId, tokenId } = caller;
  const actor = { kind: "account", tokenId, address } as const;
  return recordAudit(database, { actor, action, organizationId, requestId });
}

/** Message for a valid token that opens no page. */
export const scopeMissing =
  "This token cannot open the account, because it lacks the scope billing. Use a token that has it.";
/** Message for a session of a token that searches, on any other page. */
export const onlySearches =
  "You are signed in with a token that opens the playground and its own searches. For this page, sign in with a token that has the scope billing.";

/** The sign-in form. `next` is the page that the person wanted, `problem` the reason why the form is shown again. */
export function signInPage({ next, problem }: { next: string; problem?: string | undefined }): Html {
  return narrowPage(html`<h1>Sign in</h1>
<p>Use one of your organization’s API tokens. You get the first one from the operator of this service.</p>
<noscript><p>A link that signs in needs JavaScript. Without it, enter the token that was printed with the link.</p></noscript>
<form class="sign-in" method="post" action="/billing/sign-in">
${problem !== undefined && html`<p id="problem" class="notice warning" role="alert">${problem}</p>`}
<input type="hidden" name="next" value="${next}">
<label for="token">Token</label>
<input id="token" name="token" type="password" required maxlength="200" autocomplete="current-password" autocapitalize="none" spellcheck="false" placeholder="smk_…" autofocus${
    problem !== undefined && html` aria-invalid="true" aria-describedby="problem"`
  }>
<button>Sign in</button>
</form>
<p class="aside">Your token is checked but not stored. The session ends after 30 minutes of inactivity, or after 12 hours. You can read the <a href="/docs">reference</a> without a token.</p>`);
}

const keyPrefix = "sign-ins:";
/** Attempts, against guessed tokens. Successful ones count. */
const ofNetwork = { keyPrefix, requestsMax: 10, windowSeconds: 60 };
const daySeconds = 86_400;
/** Sign-ins, because the audit trail keeps each for 90 days, with its sign-out. */
const ofToken = { keyPrefix, requestsMax: 200, windowSeconds: daySeconds };
/** An organization can have a hundred tokens, and create new ones. */
const ofOrganization = { keyPrefix, requestsMax: 1_000, windowSeconds: daySeconds };

/**
 * The hash of an IPv4 address, or of the /64 network of an IPv6 address: a subscriber has all of it. A proxy may report neither.
 * Redis stores a hash because an address is that of a person.
 */
function networkOf(address = ""): string {
  const parsed = ipaddr.isValid(address) ? ipaddr.process(address) : "unknown";
  const network = parsed instanceof ipaddr.IPv6 ? parsed.parts.slice(0, 4).join(":") : parsed.toString();
  return hash("sha256", network, "base64url");
}
