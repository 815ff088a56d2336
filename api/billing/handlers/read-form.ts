import type { Request } from "express";
import { CallerError } from "../../../shared/errors.ts";
import { readBytes } from "../../http/read-json.ts";

const formBytesMax = 16 * 1024;

/**
 * The fields of a form, from the body alone: nothing secret may stand in an address.
 * @throws {CallerError} `bad_request` for what no form of ours sends.
 */
export async function readForm(request: Request): Promise<URLSearchParams> {
  const [type = ""] = (request.headers["content-type"] ?? "").split(";");
  if (type.trim().toLowerCase() !== "application/x-www-form-urlencoded")
    throw new CallerError("bad_request", { reason: "content_type_not_form" });
  return new URLSearchParams((await readBytes(request, formBytesMax)).toString("utf8"));
}
