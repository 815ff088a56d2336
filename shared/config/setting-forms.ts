import { z } from "zod";
import { expectedFiles, hasFiles } from "./postgres-files.ts";

/** The forms of settings. Each says what it expects, and never repeats a value, which may be a secret. */

export const formed = (form: RegExp, expected: string) => z.string().regex(form, expected);

/** A whole number, written in digits only. Other notations are refused, not interpreted. */
export function wholeNumber(min: number, max: number) {
  const expected = `expected a whole number from ${min} to ${max}`;
  return formed(/^\d{1,9}$/, expected)
    .transform(Number)
    .refine((value) => value >= min && value <= max, expected);
}

const expectedUrl = (protocols: readonly string[]) =>
  `expected a URL that begins with ${protocols.map((protocol) => `${protocol}//`).join(" or ")}`;

/** Blanks around an address do not count: URL ignores them, and its other readers do not. */
export const trimmed = (isOne: (text: string) => boolean, expected: string) =>
  z.string(expected).trim().refine(isOne, expected);

/** An absolute URL of one of these protocols, such as `https:`. */
export function url(...protocols: string[]) {
  const isOfOne = (text: string) => protocols.some((protocol) => text.toLowerCase().startsWith(`${protocol}//`));
  return trimmed((text) => URL.canParse(text) && isOfOne(text), expectedUrl(protocols));
}

/** The URL of an API, which goes before the paths there: without slashes at its end. */
export const baseUrl = () => url("http:", "https:").transform((text) => text.replace(/\/+$/, ""));

export const postgresUrl = () => url("postgres:", "postgresql:").refine(hasFiles, expectedFiles);

/** A URL without a path, which browsers call an origin. Serpmill adds its own paths. */
export function origin(...protocols: string[]) {
  const expected = `${expectedUrl(protocols)} and has no path`;
  const isOrigin = (text: string) => {
    const address = URL.parse(text);
    return address !== null && protocols.includes(address.protocol) && address.href === `${address.origin}/`;
  };
  return trimmed(isOrigin, expected).transform((text) => new URL(text).origin);
}

/** The parts of a comma list, empty ones too. */
const partsOf = (given: string) => given.split(",").map((part) => part.trim());
export const filledPartsOf = (given: string) => partsOf(given).filter((part) => part !== "");

/** A part that is there twice was meant to be another one. */
export const isEachOnce = (parts: readonly unknown[]) => new Set(parts).size === parts.length;

/** A comma list of one or more. */
export const listOf = <Part>(part: z.ZodType<Part, string>, expected?: string): z.ZodType<Part[]> =>
  z.string(expected).transform(partsOf).pipe(z.array(part).refine(isEachOnce, "expected each only once"));

/** Names of hosts without ports, in lower case. */
export const hostNames = z
  .string()
  .toLowerCase()
  .default("")
  .transform(filledPartsOf)
  .pipe(z.array(formed(/^[\w.-]*$/, "expected a comma list of host names, without ports")));

export const port = wholeNumber(0, 65_535);

export const onOrOff = z.enum(["on", "off"], "expected on or off");

/** A secret of Stripe. Its prefix names its kind, so that two kinds are not confused. */
export function stripeSecret(...prefixes: string[]) {
  const form = new RegExp(`^(${prefixes.join("|")})[\\w-]{8,}$`);
  return formed(form, `expected letters, digits, - or _ that begin with ${prefixes.join(" or ")}`).optional();
}

/** A key or password that is sent in a header. */
export const visibleAscii = formed(/^[\x21-\x7e]+$/, "expected visible ASCII characters without spaces").optional();

const expectedCollector = "expected a URL that begins with http:// or https://, without a login, a query or a fragment";

/** The address of a collector alone: a login belongs into the headers, which are a secret. */
export const collectorAddress = z.string().refine((text) => {
  const address = URL.parse(text);
  return address !== null && /^https?:$/.test(address.protocol) && address.href === address.origin + address.pathname;
}, expectedCollector);

const header = String.raw`[\w!#$%&'*+.^|~-]+=[\x21-\x2b\x2d-\x7e]+`;
export const headerList = formed(
  new RegExp(`^${header}(,${header})*$`),
  "expected a comma list of name=value, with values percent-encoded",
);

export const share = formed(/^(0|1|0?\.\d{1,9}|1\.0{1,9})$/, "expected a number from 0 to 1").transform(Number);

/** A name of a service or of a person. Blanks alone are none. */
export const printableName = formed(
  /^(?! *$)[\x20-\x7e]{1,100}$/,
  "expected 1 to 100 printable ASCII characters",
).optional();
