import type { Request } from "express";
import { CallerError } from "../../../shared/errors.ts";
import type { ApiContext } from "../../context.ts";

/**
 * Lets only forms of our own pages do anything. Browsers tell where a request came from, in headers that no page can set:
 * Sec-Fetch-Site over https and from this machine, Origin on every POST. One that tells neither is refused.
 * @throws {CallerError} `bad_request` for what another site sent.
 */
export function rejectCrossOrigin(context: ApiContext, request: Request): void {
  const site = request.headers["sec-fetch-site"];
  const isOwn = site === undefined ? isOwnOrigin(context, request) : site === "same-origin";
  if (!isOwn) throw new CallerError("bad_request", { reason: "sent_by_another_site" });
}

function isOwnOrigin({ config }: ApiContext, { headers }: Request): boolean {
  const { origin } = headers;
  if (!origin || !URL.canParse(origin)) return false;
  return origin === config.PUBLIC_URL || new URL(origin).host === headers.host;
}

/** Whether a link on another site led here: then the browser has kept the session's cookie back. */
export function isCrossSiteNavigation({ headers }: Request): boolean {
  return headers["sec-fetch-site"] === "cross-site";
}
