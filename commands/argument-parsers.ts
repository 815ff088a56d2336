import { InvalidArgumentError } from "commander";
import { z } from "zod";
import { idForm, requestId } from "../shared/ids.ts";
import { textProblem } from "../shared/query/query.ts";

/** Parsers for commander's arguments and options. Each throws an {@link InvalidArgumentError} that says what it expects. */

/** Parses a whole number from `min` to `max`, written in digits. */
export function parseWholeNumber(min: number, max: number = Number.MAX_SAFE_INTEGER, orElse = "") {
  return (text: string): number => {
    const value = Number(text);
    if (/^(\d+|-[1-9]\d*)$/.test(text) && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`expected a whole number from ${min} to ${max}${orElse}`);
  };
}

/** Parses a whole number from `min` to `max`, or the word `none`. */
export function parseWholeNumberOrNone(min: number, max: number = Number.MAX_SAFE_INTEGER) {
  const parse = parseWholeNumber(min, max, ", or none");
  return (text: string): number | "none" => (text === "none" ? text : parse(text));
}

/** Parses the id of an organization (`org_…`), a token (`tok_…`), an event of a webhook (`evt_…`) or a gap of the ledger (`gap_…`). */
export function parseId(prefix: "org" | "tok" | "evt" | "gap") {
  return (text: string): string => {
    if (idForm(prefix).test(text)) return text;
    throw new InvalidArgumentError(`expected ${prefix}_ and 26 letters and digits`);
  };
}

export function parseRequestId(text: string): string {
  if (requestId.safeParse(text).success) return text;
  throw new InvalidArgumentError("expected the id of a search: req_ and 26 letters and digits");
}

/** Parses the code of a plan that may be new. */
export function parsePlanCode(text: string): string {
  if (/^[a-z][a-z0-9_-]{0,31}$/.test(text)) return text;
  throw new InvalidArgumentError("expected a lower-case letter and up to 31 more lower-case letters, digits, - or _");
}

/** As zod counts: -1 for times without seconds. */
const minutes = -1;

/** Parses a time by ISO 8601, a date alone as its beginning in UTC. */
export function parseTime(text: string): Date {
  const isDate = z.iso.date().safeParse(text).success;
  const forms = [z.iso.datetime({ offset: true }), z.iso.datetime({ offset: true, precision: minutes })];
  const isTime = z.union(forms).safeParse(text).success;
  if (isDate || isTime) return new Date(text);
  throw new InvalidArgumentError("expected a date, or a date and time with Z or an offset: 2026-11-22T09:30Z");
}

/** Parses a calendar month. */
export function parseMonth(text: string): string {
  if (/^20\d\d-(0[1-9]|1[0-2])$/.test(text)) return text;
  throw new InvalidArgumentError("expected a month, such as 2026-10");
}

/** Parses a text that lists and pages can show. @returns it without blanks around it, which would make another id of a copied one. */
export function parseText(lengthMax: number) {
  return (text: string): string => {
    const trimmed = text.trim();
    if (trimmed.length < 1 || trimmed.length > lengthMax)
      throw new InvalidArgumentError(`expected 1 to ${lengthMax} characters`);
    const problem = textProblem(trimmed);
    if (problem === undefined) return trimmed;
    throw new InvalidArgumentError(problem.charAt(0).toLowerCase() + problem.slice(1, -1));
  };
}

/** Parses a comma list of one or more of these names. @returns them without repeats, in the order of `names`. */
export function parseList<Name extends string>(names: readonly Name[]) {
  return (text: string): Name[] => {
    const wanted = new Set(text.split(",").map((name) => name.trim()));
    const known = names.filter((name) => wanted.has(name));
    if (known.length === wanted.size) return known;
    throw new InvalidArgumentError(`expected a comma list of ${names.join(", ")}`);
  };
}
