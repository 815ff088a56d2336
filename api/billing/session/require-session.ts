import type { Request, Response } from "express";
import { CallerError } from "../../../shared/errors.ts";
import type { Caller } from "../../../shared/organizations/organizations.ts";
import type { ApiContext } from "../../context.ts";
import { requestScopeOf } from "../../http/request-scope.ts";
import { callerOf, closeSession, type Presence, readSession, type Session } from "./sessions.ts";

export interface SignedInCaller {
  session: Session;
  caller: Caller;
}

/**
 * Who is in front of the browser, or undefined. A session whose token is not valid any more ends here, unless only an open
 * page asks: the person behind it is told of the end where they sign in again, and that is seen by the cookie.
 */
export async function readSignedIn(
  context: ApiContext,
  request: Request,
  response: Response,
  presence: Presence = "active",
): Promise<SignedInCaller | undefined> {
  const session = await readSession(context, request, presence);
  if (!session) return undefined;
  const caller = await callerOf(context, session);
  if (!caller) {
    if (presence === "active") await closeSession(context, request, response);
    return undefined;
  }
  requestScopeOf(response).logFields.organizationId = caller.organizationId;
  return { session, caller };
}

/** @throws {CallerError} `unauthenticated` where nobody is signed in. */
export async function requireSession(
  context: ApiContext,
  request: Request,
  response: Response,
): Promise<SignedInCaller> {
  const signedIn = await readSignedIn(context, request, response);
  if (!signedIn) throw new CallerError("unauthenticated");
  return signedIn;
}
