import { TypeID, typeid } from "typeid-js";
import { z } from "zod";

/** The kinds of things that have an id, which begins with this word. */
export type IdPrefix =
  | "req"
  | "org"
  | "tok"
  | "grant"
  | "correction"
  | "topup"
  | "api"
  | "worker"
  | "mcp"
  | "whk"
  | "evt"
  | "pay";

/** A new TypeID (https://github.com/jetify-com/typeid): the prefix, `_` and 26 base-32 characters of a UUIDv7. */
export function newId(prefix: IdPrefix): string {
  return typeid(prefix).toString();
}

/** When an id was made, by the clock of the machine that made it. */
export function timeOfId(id: string): Date {
  const [high = "", low = ""] = TypeID.fromString(id).toUUID().split("-");
  return new Date(Number.parseInt(high + low, 16));
}

/** Whether a text is an id that `newId` may have made: not all texts of its form stand for a UUID. */
function isId(text: string): boolean {
  try {
    TypeID.fromString(text).toUUID();
    return true;
  } catch {
    return false;
  }
}

/** The id of a request, as callers see it. */
export const requestId = z
  .string()
  .regex(/^req_[0-7][0-9a-hjkmnp-tv-z]{25}$/)
  .refine(isId)
  .meta({
    description: "The id of the request, equal to `X-Request-Id`. Name it when you report a problem.",
    minLength: 30,
    maxLength: 30,
  });

/** The id of a token. */
export const tokenId = z.string().regex(/^tok_[0-7][0-9a-hjkmnp-tv-z]{25}$/);
