import type { Request, Response } from "express";
import { CallerError } from "../../../shared/errors.ts";
import type { Caller } from "../../../shared/organizations/organizations.ts";
import type { Presence, Session, Sessions } from "./sessions.ts";

export interface SignedIn {
  session: Session;
  caller: Caller;
}

/**
 * The session of a request and its caller, or `unauthenticated` if the browser is not signed in. A session whose token is no
 * longer valid, or lacks the scope, is closed here. With `idle` presence it stays until the person's next page view: the cookie is how that view knows
 * that a session has ended, and says so on the sign-in form.
 */
export async function readSignedIn(
  sessions: Sessions,
  request: Request,
  response: Response,
  presence: Presence = "active",
): Promise<SignedIn | CallerError> {
  const session = await sessions.read(request, presence);
  if (!session) return new CallerError("unauthenticated");
  const caller = await sessions.callerOf(session, response);
  if (caller instanceof CallerError) {
    if (presence === "active") await sessions.close(request, response);
    return caller;
  }
  return { session, caller };
}

/** @throws {CallerError} `unauthenticated` if the browser is not signed in, with the reason `scope` if its token may not be. */
export async function requireSession(sessions: Sessions, request: Request, response: Response): Promise<SignedIn> {
  const signedIn = await readSignedIn(sessions, request, response);
  if (signedIn instanceof CallerError) throw signedIn;
  return signedIn;
}
