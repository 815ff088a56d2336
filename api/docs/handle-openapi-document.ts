import type { Request, Response } from "express";
import { openApiDocument } from "./openapi-document.ts";

/** GET /openapi.json: the same for everybody, so that it may be kept for a while; made once. */
export function handleOpenApiDocument() {
  const body = Buffer.from(JSON.stringify(openApiDocument()));
  return (_request: Request, response: Response) => {
    response.set({
      "Cache-Control": "public, max-age=300",
      "Content-Type": "application/json; charset=utf-8",
      "X-Content-Type-Options": "nosniff",
    });
    response.end(body);
  };
}
