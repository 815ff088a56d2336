import { z } from "zod";
import { organicPerPage } from "../../shared/query/depth.ts";
import { countryCodeByName, countryName } from "../../shared/query/countries.ts";
import { readLanguage } from "../../shared/query/languages.ts";
import { readLocation } from "../../shared/query/locations.ts";
import { subdivisionByCode, usState } from "../../shared/query/subdivisions.ts";
import { foldName } from "../../shared/gazetteer/fold-name.ts";
import {
  hasAtMost,
  inOneLine,
  keywordCharactersMax,
  locationCharactersMax,
  requiredString,
} from "../../shared/query/query.ts";
import { readUpTo } from "../../shared/schema.ts";
import type { CallerError, ErrorCode } from "../../shared/errors.ts";
import type { Result, ResultType, SiteLink } from "../../shared/results.ts";
import type { SearchResponseBody } from "../../shared/search-answer.ts";

/**
 * A door: the search API of another service, as its clients speak it. It is a table of paths, fields and errors. The translator
 * (doors.ts) does everything else, so a door has no search, no charge and no limit of its own.
 */
export interface Door {
  /** The paths under the door's root, with the methods of each. */
  paths: Readonly<Record<string, readonly string[]>>;
  /** What some of the paths answer without a search, and so for nothing: what the door can do. */
  about?: Readonly<Record<string, () => unknown>>;
  /** Whether its clients send their fields in the query string, or posted as a form, or as a JSON body. */
  sent: "query" | "body";
  /** The clients' fields that it reads, made into an order. It ignores all others. */
  fields: z.ZodType<Order>;
  /** The clients' names of our fields, for the errors that name one. */
  names: Readonly<Partial<Record<keyof Order["search"], string>>>;
  /** The statuses that its clients expect instead of ours, if any. */
  statuses?: Readonly<Partial<Record<ErrorCode, number>>>;
  /** Writes an error: the clients' fields with our code inside. */
  writeError: (error: CallerError, requestId: string, status: number) => unknown;
}

/** What a client asks for. */
export interface Order {
  /** The body of a request to POST /v1/serp/search with the same meaning. */
  search: {
    keyword: string;
    depth?: number | undefined;
    language?: string | undefined;
    location?: string | undefined;
    targetDomain?: string | undefined;
  };
  /** The clients' name of the location, if they have several and this one was sent. */
  locationName?: string;
  write: (answer: SearchResponseBody, more: { path: string; durationMs: number }) => unknown;
}

/** A keyword that a client must send. Models write several lines, and programs pass on what a person pasted. */
export const requiredKeyword = requiredString().transform(inOneLine);

/** Text that a client may leave out, or send empty. */
export const optionalText = z
  .string("Expected a string.")
  .nullish()
  .transform((text) => (text === "" ? undefined : (text ?? undefined)));

/** What a client asks for of the organic results: the depth that reaches it, and that part of them. */
export interface Part {
  depth: number;
  of: <T>(organic: readonly T[]) => T[];
}

/** Google's pages rarely have fewer organic results, except for the last one. */
const organicPerPageMin = 6;

/**
 * One page of several, each with so many results. Google's pages often have fewer than ten: of as many of them as were fetched,
 * this is the last one, which begins where it would if all had equally many. It is empty if the pages before it have all results
 * with {@link organicPerPageMin} on each.
 */
export function pageOf(number: number, size: number = organicPerPage): Part {
  const end = number * size;
  const isWhole = size % organicPerPage === 0;
  const startIn = (count: number) => {
    const isPastEnd = count <= ((end - size) / organicPerPage) * organicPerPageMin;
    return isWhole && !isPastEnd ? Math.floor((count * (number - 1)) / number) : end - size;
  };
  return { depth: wholePages(end), of: (organic) => organic.slice(startIn(organic.length), end) };
}

const wholePages = (count: number) => Math.ceil(count / organicPerPage) * organicPerPage;

/** A whole number, or else the usual one. Forms and templates send it as text, or nothing. */
export const wholeNumberUpTo = (max: number, usual: number) => {
  const expected = `Expected a whole number from 1 to ${max}.`;
  return z.preprocess(
    (sent) => (typeof sent === "string" && /^\d{0,9}$/.test(sent) ? Number(sent || usual) : sent),
    z
      .int(expected)
      .min(1, expected)
      .max(max, expected)
      .nullish()
      .transform((number) => number ?? usual),
  );
};

/** How many results a client wants; by default as many as the other service gives. */
export const countUpTo = (max: number, usual: number) =>
  wholeNumberUpTo(max, usual).transform((count): Part => pageOf(1, count));

/** A field whose wish cannot be granted: it may only be absent, or say that it wants nothing. */
export const notGiven = (what: string, isNothing: (value: unknown) => boolean = (value) => !value) =>
  z
    .unknown()
    .refine((value) => value === null || isNothing(value), `This door gives no ${what}.`)
    .optional();

const domainsMax = 300;

/** A domain that may have been copied from a browser: `https://example.com/`. */
const withoutScheme = (text: string) => text.trim().replace(/^(-?)https?:\/\/(.*?)\/?$/i, "$1$2");

/** Domains, as clients list them. One may have a minus before it, and a path behind it. */
export const domainList = readUpTo(
  domainsMax,
  z
    .array(
      z
        .string("Expected a domain.")
        .overwrite(withoutScheme)
        .regex(/^-?[^\s()":-][^\s()":]{0,252}$/, "Expected a domain."),
      "Expected a list of domains.",
    )
    // Not `max`, which would also count the characters of a text.
    .refine(({ length }) => length <= domainsMax, `Expected at most ${domainsMax} domains.`)
    .nullish()
    .transform((domains) => domains ?? []),
);

/** Google's operators for the sites that a client wants. */
export function onSites(domains: readonly string[]): string[] {
  const [one, ...others] = domains.map((domain) => `site:${domain}`);
  if (one === undefined) return [];
  return [others.length === 0 ? one : `(${[one, ...others].join(" OR ")})`];
}

/** Google's operators for the sites that a client does not want. */
export const notOnSites = (domains: readonly string[]): string[] => domains.map((domain) => `-site:${domain}`);

const dayMs = 86_400_000;
/** By the first letter of a span's name. Hours count as days too, so that a repeat on the same day is the same search. */
const daysOf = new Map([
  ["h", 1 / 24],
  ["d", 1],
  ["w", 7],
  ["m", 30],
  ["y", 365],
]);

/** The date (UTC) at which so many spans until now began. */
function startOf(span: string, count = 1): string {
  const days = Math.ceil((daysOf.get(span.charAt(0)) ?? 1) * count);
  return new Date(Date.now() - days * dayMs).toISOString().slice(0, 10);
}

/** A span of time until now, such as `week`, as the date of its start. */
export const spanOf = (...names: string[]) =>
  optionalText
    .pipe(z.enum(names, `Expected one of ${names.join(", ")}.`).optional())
    .transform((name) => name && startOf(name));

/** A date such as `2026-11-29`. */
export const isoDate = optionalText.pipe(z.iso.date("Expected a date such as 2026-11-29.").optional());

/** A date such as `11/29/2026`, made into an {@link isoDate}. */
export const americanDate = optionalText
  .transform((text) => {
    const [, month = "", day = "", year = ""] = /^(\d{1,2})\/(\d{1,2})\/(\d{4})$/.exec(text ?? "") ?? [];
    return text && `${year}-${month.padStart(2, "0")}-${day.padStart(2, "0")}`;
  })
  .pipe(z.iso.date("Expected a date such as 11/29/2026.").optional());

/** Google's operators for what was published after each of these dates, and before that one. */
export function publishedWithin(after: readonly (string | undefined)[], before: string | undefined): string[] {
  const latest = after
    .filter((date) => date !== undefined)
    .toSorted()
    .at(-1);
  return [latest && `after:${latest}`, before && `before:${before}`].filter((operator) => operator !== undefined);
}

/**
 * Google's parameter `tbs`, such as `qdr:w2` or `cdr:1,cd_min:1/31/2026,cd_max:2/28/2026`, as operators. Like Google, it ignores
 * what it cannot read.
 */
export const publishedWithinTbs = optionalText.transform((text = "") => {
  const split = text.split(",").map((part) => part.split(":"));
  const parts = new Map(split.map(([name = "", value = ""]) => [name, value]));
  const [, span, count] = /^([hdwmy])(\d{0,3})$/.exec(parts.get("qdr") ?? "") ?? [];
  const dateOf = (name: string) => americanDate.safeParse(parts.get(name)).data;
  return publishedWithin([span && startOf(span, Number(count || 1)), dateOf("cd_min")], dateOf("cd_max"));
});

/** A keyword with Google's operators for what a client wants, by the client's name of the field. They alone are no search. */
export function withOperators(
  context: z.RefinementCtx,
  keyword: string,
  operators: Readonly<Record<string, readonly string[]>>,
): string {
  if (keyword === "") return "";
  const whole = [keyword, ...Object.values(operators).flat()].join(" ");
  // The search would refuse the query, which may be short.
  if (hasAtMost(keyword, keywordCharactersMax) && !hasAtMost(whole, keywordCharactersMax)) {
    const lengths = Object.entries(operators).map(([name, texts]) => ({ name, length: texts.join(" ").length }));
    const [longest] = lengths.toSorted((one, other) => other.length - one.length);
    const message = `Expected less: with the query it exceeds ${keywordCharactersMax} characters.`;
    context.addIssue({ code: "custom", path: [longest?.name ?? ""], message });
  }
  return whole;
}

/** The language of a locale such as `de-AT`, and the country that it names. `at` is a country alone. `all` and `auto` name neither. */
export function localeOf(locale: string | undefined): { language?: string; location?: string } {
  if (locale === undefined || ["all", "auto"].includes(locale)) return {};
  const [, country = ""] = /^[a-z]{2,3}[-_](?:[a-z]{4}[-_])?([a-z]{2})$/i.exec(locale) ?? [];
  const location = countryCodeByName(country) && country;
  const isUnknown = "problem" in readLanguage(locale);
  if (isUnknown && locale.length === 2 && countryCodeByName(locale)) return { location: locale };
  // If the pair of language and country is unknown, each part may be known.
  const [language = ""] = isUnknown ? locale.split(/[-_]/) : [locale];
  return { language, ...(location !== undefined && { location }) };
}

/**
 * A location as a client sends it, completed by its field for the country if it names none. A code alone is that of a region in this
 * country, if it has one. In the United States, Georgia is the state.
 */
export function locationIn(location: string | undefined, country: string | undefined): string | undefined {
  if (location === undefined || country === undefined) return location ?? country;
  const tooLong = [location, country].find((text) => text.length > locationCharactersMax);
  if (tooLong !== undefined) return tooLong; // It is refused, and reading it takes long.
  const code = countryCodeByName(country);
  const state = code === "US" ? usState(foldName(location)) : undefined;
  if (state) return `${state.name}, ${country}`;
  const read = readLocation(location);
  if ("countryCode" in read && read.countryCode === code) return location;
  const region = code && subdivisionByCode(code, foldName(location));
  if (region !== undefined) return region;
  const namesCountry = location.includes(",") || countryCodeByName(location) !== undefined;
  if (namesCountry && !("problem" in read)) return location;
  // After a place, `CA` may be California.
  const name = code && usState(foldName(country)) ? countryName(code) : country;
  return `${location}, ${name}`;
}

/** The organic results. All other elements of the page are of other types. */
export const organicOf = ({ results }: SearchResponseBody): Result[] => ofType(results, "organic");

export const ofType = (results: readonly Result[], ...types: ResultType[]): Result[] =>
  results.filter(({ type }) => types.includes(type));

/** The links within these elements, each title once: every page of Google's repeats keywords and questions. */
export function linksIn(results: readonly Result[], type: ResultType): SiteLink[] {
  const links = ofType(results, type).flatMap(({ siteLinks }) => siteLinks);
  return [...Map.groupBy(links, ({ title }) => title).values()].flatMap(([first]) => first ?? []);
}

/** The knowledge panels that say what they are about. The ratings of a business may be a panel without a name. */
export const panelsOf = (results: readonly Result[]): Result[] =>
  ofType(results, "knowledge_graph").filter(({ title, description }) => (title || description) !== "");

/** Longer labels are sentences. */
const labelCharactersMax = 60;

/** The facts of a panel: `Founded: 1976` has a label and a value. A line without a label is none. */
export const factsOf = ({ richSnippet }: Result): { label: string; value: string }[] =>
  richSnippet.bottom.flatMap((line) => {
    const at = line.indexOf(": ");
    return at < 1 || at > labelCharactersMax ? [] : [{ label: line.slice(0, at), value: line.slice(at + 2) }];
  });

/** What the engine itself answers, in words: quoted, calculated or generated. */
export const answersIn = ({ results }: SearchResponseBody): string[] =>
  ofType(results, "answer_box", "featured_snippet", "ai_overview")
    .map(answerText)
    .filter((text) => text !== "");

/** An answer with the facts around it: many, such as the weather, have nothing else. Without a description, it begins with its title. */
export const answerText = ({ title, description, richSnippet: { top, bottom } }: Result): string =>
  [description === "" ? title : "", ...top, description, ...bottom].filter((text) => text !== "").join(" · ");
