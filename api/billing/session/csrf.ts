import type { Request, Response } from "express";
import { CallerError } from "../../../shared/errors.ts";
import { requestScopeOf } from "../../http/request-scope.ts";

/**
 * Rejects forms that another site sent. Browsers name the origin of a request in headers that pages cannot set: Sec-Fetch-Site over
 * https and on localhost, Origin on every POST. A request with neither is rejected too.
 * @throws {CallerError} `bad_request`, reason `sent_by_another_site`.
 */
export function rejectCrossOrigin(request: Request, response: Response): void {
  const site = request.headers["sec-fetch-site"];
  const isOwn = site === undefined ? isOwnOrigin(request, response) : site === "same-origin";
  if (!isOwn) throw new CallerError("bad_request", { reason: "sent_by_another_site" });
}

function isOwnOrigin({ headers }: Request, response: Response): boolean {
  const { origin } = headers;
  if (!origin || !URL.canParse(origin)) return false;
  return origin === requestScopeOf(response).origin || new URL(origin).host === headers.host;
}

/** Whether a link on another site led here. The browser then withholds the session's SameSite=Strict cookie. */
export const isCrossSiteNavigation = ({ headers }: Request): boolean => headers["sec-fetch-site"] === "cross-site";
