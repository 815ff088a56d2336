import { z } from "zod";

/** The forms of settings that several have. Each says what it expects, and never repeats a value, which may be a secret. */

/** A whole number, written in digits only. Other notations are refused, not interpreted. */
export function wholeNumber(min: number, max: number) {
  const expected = `expected a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d{1,9}$/, expected)
    .transform(Number)
    .refine((value) => value >= min && value <= max, expected);
}

const expectedUrl = (protocols: readonly string[]) =>
  `expected a URL that begins with ${protocols.map((protocol) => `${protocol}//`).join(" or ")}`;

/** An absolute URL of one of these protocols, such as `https:`. */
export function url(...protocols: string[]) {
  const expected = expectedUrl(protocols);
  return z
    .string(expected)
    .refine((text) => URL.canParse(text) && protocols.includes(new URL(text).protocol), expected);
}

/** A URL without a path, which browsers call an origin. Serpmill adds its own paths. */
export function origin(...protocols: string[]) {
  const expected = `${expectedUrl(protocols)} and has no path`;
  const isOrigin = (text: string) => {
    const address = URL.parse(text);
    return address !== null && protocols.includes(address.protocol) && address.href === `${address.origin}/`;
  };
  return z
    .string()
    .refine(isOrigin, expected)
    .transform((text) => new URL(text).origin);
}

/** Names of hosts without ports, in lower case. */
export const hostNames = z
  .string()
  .default("")
  .transform((text) => text.split(",").map((name) => name.trim()))
  .pipe(z.array(z.string().regex(/^[\w.-]*$/, "expected a comma list of host names, without ports")))
  .transform((names) => names.filter((name) => name !== "").map((name) => name.toLowerCase()));

/** A secret of Stripe. Its prefix names its kind, so that two kinds are not confused. */
export function stripeSecret(...prefixes: string[]) {
  return z
    .string()
    .regex(
      new RegExp(`^(${prefixes.join("|")})[\\w-]{8,}$`),
      `expected letters, digits, - or _ that begin with ${prefixes.join(" or ")}`,
    )
    .optional();
}
