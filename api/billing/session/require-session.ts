import type { Request, Response } from "express";
import { CallerError } from "../../../shared/errors.ts";
import type { Caller } from "../../../shared/organizations/organizations.ts";
import { requestScopeOf } from "../../http/request-scope.ts";
import type { Presence, Session, Sessions } from "./sessions.ts";

export interface SignedIn {
  session: Session;
  caller: Caller;
}

/**
 * The session of a request and its caller, or undefined if the browser is not signed in. A session whose token is no longer
 * valid is closed here. With `idle` presence it stays until the person's next page view: the cookie is how that view knows
 * that a session has ended, and says so on the sign-in form.
 */
export async function readSignedIn(
  sessions: Sessions,
  request: Request,
  response: Response,
  presence: Presence = "active",
): Promise<SignedIn | undefined> {
  const session = await sessions.read(request, presence);
  if (!session) return undefined;
  const caller = await sessions.callerOf(session);
  if (!caller) {
    if (presence === "active") await sessions.close(request, response);
    return undefined;
  }
  const { organizationId, tokenId } = caller;
  Object.assign(requestScopeOf(response).logFields, { organizationId, tokenId });
  return { session, caller };
}

/** @throws {CallerError} `unauthenticated` if the browser is not signed in. */
export async function requireSession(sessions: Sessions, request: Request, response: Response): Promise<SignedIn> {
  const signedIn = await readSignedIn(sessions, request, response);
  if (!signedIn) throw new CallerError("unauthenticated");
  return signedIn;
}
