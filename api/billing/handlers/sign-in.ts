import { createHash } from "node:crypto";
import type { Request, Response } from "express";
import ipaddr from "ipaddr.js";
import { hashToken, isTokenShaped } from "../../../shared/organizations/tokens.ts";
import type { ApiContext } from "../../context.ts";
import { unavailable } from "../../errors.ts";
import { requestScopeOf } from "../../http/request-scope.ts";
import type { Billing } from "../billing.ts";
import { rejectCrossOrigin } from "../session/csrf.ts";
import { readForm } from "./read-form.ts";
import { sendPage } from "../send-page.ts";
import { callerOf, closeSession, openSession } from "../session/sessions.ts";
import { signInPage } from "../views/sign-in-page.ts";

const attemptsMax = 10;
const attemptsSeconds = 60;

/** POST /billing/sign-in: a token for a session. Every token that is not valid gets the same answer. */
export function handleSignIn(billing: Billing) {
  const { context } = billing;
  return async (request: Request, response: Response) => {
    rejectCrossOrigin(context, request);
    const again = (status: number, says: string) =>
      sendPage(billing, request, response, { status, title: "Sign in", body: signInPage(says) });

    if (!(await mayTry(context, request))) {
      context.metrics.signIns.inc({ outcome: "limited" });
      response.setHeader("Retry-After", attemptsSeconds);
      return again(429, "There were too many attempts from here. Try again in a minute.");
    }
    const token = (await readForm(request)).get("token")?.trim() ?? "";
    const tokenHash = hashToken(token).toString("hex");
    const caller = isTokenShaped(token) ? await callerOf(context, { tokenHash }) : undefined;
    if (!caller) {
      context.metrics.signIns.inc({ outcome: "refused" });
      requestScopeOf(response).logFields.outcome = "refused";
      response.setHeader("WWW-Authenticate", "Bearer");
      return again(401, "This token is not valid. It may be mistyped, expired or revoked.");
    }
    context.metrics.signIns.inc({ outcome: "signed_in" });
    requestScopeOf(response).logFields.organizationId = caller.organizationId;
    await openSession(context, request, response, tokenHash);
    response.writeHead(303, { Location: "/billing" }).end();
  };
}

/** POST /billing/sign-out: the session is worth nothing from now on. */
export function handleSignOut({ context }: Billing) {
  return async (request: Request, response: Response) => {
    rejectCrossOrigin(context, request);
    await closeSession(context, request, response);
    response.writeHead(303, { Location: "/billing" }).end();
  };
}

/** Counts an attempt, good or bad, from where it comes. */
async function mayTry({ redis }: ApiContext, request: Request): Promise<boolean> {
  const key = `sign-ins:${createHash("sha256").update(networkOf(request.ip)).digest("base64url")}`;
  const replies = await redis
    .multi()
    .incr(key)
    .expire(key, attemptsSeconds, "NX")
    .exec()
    .catch(() => undefined);
  const [failed, attempts] = replies?.[0] ?? [true];
  if (failed) throw unavailable("redis_unreachable");
  return Number(attempts) <= attemptsMax;
}

/** An address; of IPv6 the network that one subscriber has (/64). What a proxy tells may be no address at all. */
function networkOf(address = ""): string {
  if (!ipaddr.isValid(address)) return "unknown";
  const parsed = ipaddr.process(address);
  return parsed instanceof ipaddr.IPv6 ? parsed.parts.slice(0, 4).join(":") : parsed.toString();
}
