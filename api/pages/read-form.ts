import type { Request } from "express";
import { CallerError } from "../../shared/errors.ts";
import { readBytes } from "../http/read-json.ts";

const formBytesMax = 16 * 1024;

/**
 * Reads the fields of a form from the request body alone. Fields in the address are ignored: addresses are logged, and a
 * token must never be.
 * @throws {CallerError} `bad_request` for another content type, or a body that {@link readBytes} rejects.
 */
export async function readForm(request: Request): Promise<URLSearchParams> {
  const [type = ""] = (request.headers["content-type"] ?? "").split(";");
  if (type.trim().toLowerCase() !== "application/x-www-form-urlencoded")
    throw new CallerError("bad_request", { reason: "content_type_not_form" });
  return new URLSearchParams((await readBytes(request, formBytesMax)).toString("utf8"));
}
