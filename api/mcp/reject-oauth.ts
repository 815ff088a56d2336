import type { Request, Response } from "express";
import { CallerError } from "../../shared/errors.ts";
import { recordError } from "../errors.ts";
import { sendJson } from "../http/send-json.ts";

const noOAuth =
  "There is no sign-in by OAuth. The token in the header `Authorization: Bearer smk_…` is missing, unknown, expired or revoked.";

/**
 * POST /register: where a client whose token was refused looks for a sign-in by OAuth, by the default of the protocol. It shows
 * its user this answer in place of the 401, so the answer is about the token, in the form of OAuth (RFC 7591, section 3.2.2).
 */
export function rejectOAuth(request: Request, response: Response): void {
  recordError(response, new CallerError("not_found"));
  sendJson(request, response, 404, JSON.stringify({ error: "access_denied", error_description: noOAuth }));
}
