import type { Request } from "express";
import { isHttps } from "./security-headers.ts";

/**
 * The origin by which the caller reaches this service: PUBLIC_URL, or else what the request says. `Host` is what the caller
 * sent, so use the address only in an answer to this caller.
 */
export function publicAddress(request: Request, publicUrl: string | undefined): string {
  return publicUrl ?? `${isHttps(request, publicUrl) ? "https" : "http"}://${request.headers.host ?? "localhost"}`;
}
