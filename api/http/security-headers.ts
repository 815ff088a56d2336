import type { ServerResponse } from "node:http";
import type { Request } from "express";
import { securityHeaders } from "../../shared/process/http.ts";

const overHttps = { ...securityHeaders, "Strict-Transport-Security": `max-age=${365 * 24 * 3_600}` } as const;
const [plainEntries, httpsEntries] = [Object.entries(securityHeaders), Object.entries(overHttps)];

/** Whether every caller reaches the service by https, because PUBLIC_URL says so. */
export const isPublicUrlHttps = (publicUrl: string | undefined): boolean => publicUrl?.startsWith("https:") ?? false;

/**
 * Whether the caller reached the service by https, so that a browser's cookie must not travel by anything else. Of the
 * proxies in front only trusted ones can say so.
 */
export function isHttps(request: Request, publicUrl: string | undefined): boolean {
  return isPublicUrlHttps(publicUrl) || request.secure;
}

/** The security headers of an answer to a request that has no request scope. */
export const securityHeadersOf = (isSecure: boolean): Record<string, string> =>
  isSecure ? overHttps : securityHeaders;

/** Sets the headers of {@link securityHeadersOf}. */
export function setSecurityHeaders(response: ServerResponse, isSecure: boolean): void {
  for (const [name, value] of isSecure ? httpsEntries : plainEntries) response.setHeader(name, value);
}
