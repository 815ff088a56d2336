import type { Request } from "express";

/** Whether the browser reached the page by https, so that its cookie must not travel by anything else. */
export function isHttps(request: Request, publicUrl: string | undefined): boolean {
  return request.secure || (publicUrl?.startsWith("https:") ?? false);
}
