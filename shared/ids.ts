import { randomUUIDv7 } from "node:crypto";
import { z } from "zod";

/** The kinds of things that have an id, which begins with this word. */
type IdPrefix =
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
  | "pay"
  | "gap";

const digits = "0123456789abcdefghjkmnpqrstvwxyz";
const digitCount = 26;
/** The digits of the first 48 bits of a UUIDv7. */
const timeDigitCount = 10;

/** A new TypeID (https://github.com/jetify-com/typeid): the prefix, `_` and 26 base-32 digits of a UUIDv7. */
export function newId(prefix: IdPrefix): string {
  const number = BigInt(`0x${randomUUIDv7().replaceAll("-", "")}`);
  const text = number.toString(32).padStart(digitCount, "0");
  // After `h`, TypeID has other digits than JavaScript.
  return `${prefix}_${text.replaceAll(/[i-v]/g, (digit) => digits.charAt(Number.parseInt(digit, 32)))}`;
}

/** When an id was made, by the clock of the machine that made it. */
export function timeOfId(id: string): Date {
  const time = id.slice(-digitCount, timeDigitCount - digitCount);
  return new Date(Array.from(time, (digit) => digits.indexOf(digit)).reduce((ms, digit) => ms * 32 + digit, 0));
}

/**
 * The id of a request, as callers see it. A UUIDv7 has its version and variant in the digits 11 and
 * 14; the largest UUID (RFC 9562), behind every search, is allowed as well.
 */
export const requestId = z
  .string()
  .regex(/^req_(?:[0-7][0-9a-hjkmnp-tv-z]{9}[ef][0-9a-hjkmnp-tv-z]{2}[89abrstv][0-9a-hjkmnp-tv-z]{12}|7z{25})$/)
  .meta({
    description: "The id of the request, equal to `X-Request-Id`. Name it when you report a problem.",
    minLength: 30,
    maxLength: 30,
  });

/** The form of the ids with a prefix. */
export const idForm = (prefix: IdPrefix) => new RegExp(`^${prefix}_[0-7][0-9a-hjkmnp-tv-z]{25}$`);

export const tokenId = z.string().regex(idForm("tok"));
