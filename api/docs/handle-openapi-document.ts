import type { Request, Response } from "express";
import { openApiDocument } from "./openapi-document.ts";

/** GET /openapi.json: built once. It is the same for all callers, so caches may keep it. */
export function handleOpenApiDocument() {
  const body = Buffer.from(JSON.stringify(openApiDocument()));
  return (_request: Request, response: Response) => {
    response.set({
      "Cache-Control": "public, max-age=300",
      "Content-Type": "application/json; charset=utf-8",
    });
    response.end(body);
  };
}
