import { hash } from "node:crypto";
import { z } from "zod";
import { depthMax } from "./depth.ts";
import { readDomain } from "./domains.ts";
import { CallerError } from "../errors.ts";
import { issuesOf } from "../errors/issues.ts";
import { readLanguage } from "./languages.ts";
import { readLocation } from "./locations.ts";
import { resultTypes } from "../results.ts";
import { natural, optional, readUpTo } from "../schema.ts";
import { truncate } from "../errors/truncate.ts";

/** The search engines. Any other name is answered with `not_implemented`. */
const engines = ["google"];

export const keywordCharactersMax = 700;
export const locationCharactersMax = 255;

const controlCharacter = /\p{Cc}/u;
/** These reorder the text around them on a page or in a log. The marks LRM and RLM do not, so they are allowed. */
const bidirectionalOverride = /[\u202a-\u202e\u2066-\u2069]/;
/** Characters without a visible form: white space, format characters, fillers, and the empty braille cell. */
const invisible = /[\p{White_Space}\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]+/gu;

/** The greatest age of an answer that a caller can accept: for so long answers are kept at most. */
const maxAgeSecondsMax = 90 * 86_400;

/** What an answer can tell about itself, if its caller asks for it. */
export const includes = ["fetchedAt", "answeredBy"] as const;

/** A search as it is executed: complete, canonical, and always serialized to the same JSON. */
export const querySchema = z.object({
  keyword: z.string().describe("The keyword, trimmed."),
  engine: z.string().describe("The search engine."),
  location: z.string().meta({
    description: "The location in canonical form, without spaces after commas.",
    examples: ["Austin,Texas,United States"],
  }),
  language: z.string().meta({ description: "The language by its English name.", examples: ["German"] }),
  device: z.enum(["desktop", "mobile"]).describe("The kind of page."),
  depth: z.int().min(1).max(depthMax).describe("The number of organic results that were requested."),
  targetDomain: optional(z.string(), "The domain that the results are limited to. Missing if the search has none."),
  types: optional(
    z.array(z.enum(resultTypes)),
    "The types that the results are limited to, each once, in the order of the documentation. Missing if the search has none.",
  ),
  format: optional(z.literal("compact"), "Missing for the full answer."),
  maxAgeSeconds: optional(
    natural.max(maxAgeSecondsMax),
    "The greatest age of the answer that was accepted. Missing if the request did not say.",
  ),
  include: optional(
    z.array(z.enum(includes)),
    "The further fields that were asked for, each once. Missing if the search has none.",
  ),
});

export type Query = z.infer<typeof querySchema>;

/** The rules of {@link text} that JSON Schema can express. */
const typedText = { minLength: 1, pattern: "^[^\\u0000-\\u001f\\u007f-\\u009f]+$" };

const keyword = text().transform((typed, context) => {
  const trimmed = typed.trim();
  if (hasAtMost(trimmed, keywordCharactersMax)) return trimmed;
  return refuse(context, typed, `Expected at most ${keywordCharactersMax} characters.`);
});

const location = text().transform((typed, context) => {
  const trimmed = typed.trim();
  if (!hasAtMost(trimmed, locationCharactersMax)) {
    return refuse(context, typed, `Expected at most ${locationCharactersMax} characters.`);
  }
  const read = readLocation(trimmed);
  return "problem" in read ? refuse(context, typed, read.problem) : read.location;
});

const language = text().transform((typed, context) => {
  const read = readLanguage(typed.trim());
  return "problem" in read ? refuse(context, typed, read.problem) : read.name;
});

const targetDomain = text().transform(
  (typed, context) => readDomain(typed) ?? refuse(context, typed, 'Expected a host name such as "example.com".'),
);

/** A list of some of these names, which is read with each once, in their order. */
const listOf = <Name extends string>(kind: string, names: readonly Name[]) => {
  const expected = `Expected a list of 1 to ${names.length} of the ${kind} ${names.join(", ")}.`;
  return readUpTo(
    names.length,
    z
      .array(z.enum(names, `Expected one of ${names.join(", ")}.`), expected)
      .min(1, expected)
      // Not `max`, which would also count the characters of a text.
      .refine((typed) => typed.length <= names.length, expected)
      .meta({ maxItems: names.length })
      .transform((typed) => names.filter((name) => typed.includes(name))),
  );
};

const types = listOf("types", resultTypes);
const include = listOf("fields", includes);

/** A whole number, with one message for whatever else was sent. */
function wholeNumber(min: number, max: number) {
  const expected = `Expected a whole number from ${min} to ${max}.`;
  return z.int({ error: expected, abort: true }).min(min, expected).max(max, expected);
}

const format = z
  .enum(["full", "compact"], 'Expected "full" or "compact".')
  .transform((typed) => (typed === "full" ? undefined : typed));

const requestFields = z.strictObject({
  keyword: keyword.meta({
    description: `What to search for, as typed into the engine: 1 to ${keywordCharactersMax} characters after trimming.`,
    ...typedText,
    maxLength: keywordCharactersMax,
    examples: ["best coffee beans"],
  }),
  engine: text()
    .default("google")
    .meta({
      description: "The search engine. Only `google` is supported; any other name is refused.",
      ...typedText,
      examples: ["google"],
    }),
  location: location.default("United States").meta({
    description:
      "Where the search is made from: a country, or a city or region in it. The last part is the country: its English name, " +
      "a usual short form, a name in one of its official languages, or its ISO 3166-1 code; or the code of a state of the " +
      "United States. A code that is both means the one that has the city (`Wilmington, DE`); if both have it, or neither, " +
      "it is refused with both. A bare city is refused with the places of that name. " +
      "A city or region that the providers do not list, or a name that several have, may be refused with " +
      "`query_rejected` and candidates.",
    default: "United States",
    ...typedText,
    maxLength: locationCharactersMax,
    examples: ["Austin, Texas, United States", "Berlin, Germany", "GB"],
  }),
  language: language.default("English").meta({
    description:
      "The language of the search: its English name, its own name, or its BCP 47 code, with a hyphen or underscore.",
    default: "English",
    ...typedText,
    examples: ["German", "Deutsch", "pt-BR"],
  }),
  device: z
    .enum(["desktop", "mobile"], 'Expected "desktop" or "mobile".')
    .default("desktop")
    .describe("The kind of page. If no provider can search it, the search is refused with `query_rejected`."),
  depth: wholeNumber(1, depthMax)
    .default(10)
    .meta({
      description:
        "The number of organic results to return. The price depends on it only if the plan has a price per page.",
      examples: [10],
    }),
  targetDomain: targetDomain.exactOptional().meta({
    description:
      "Return only results on this domain or its subdomains. They keep their ranks among all results. A host name; " +
      "`https://`, `www.` and a path are removed.",
    ...typedText,
    examples: ["example.com"],
  }),
  types: types.exactOptional().meta({
    description:
      "Return only results of these types. They keep their ranks among all results. The price does not depend on it.",
    examples: [["organic", "people_also_ask"]],
  }),
  format: format.exactOptional().meta({
    description:
      "The format of the answer: `full`, or `compact` with only title, URL and description of the organic results, " +
      "without `types`. The price does not depend on it.",
    default: "full",
  }),
  maxAgeSeconds: wholeNumber(0, maxAgeSecondsMax)
    .exactOptional()
    .meta({
      description:
        "The greatest age of the answer in seconds. 0 asks a provider anew. With more, an answer to the same query may come back that the " +
        "organization has paid for before, if it has its answers kept; that costs the plan's cached price. Without it the search " +
        "asks a provider, or the cache of the operator.",
      examples: [3_600],
    }),
  include: include.exactOptional().meta({
    description:
      "Further fields of the answer: `fetchedAt`, when a provider answered this query, and `answeredBy`, which provider " +
      "did. The price does not depend on it.",
    examples: [["fetchedAt"]],
  }),
});

/** The body of POST /v1/serp/search and the arguments of the tool `serp.search`, once those were read. Nothing is coerced. */
export const searchRequestBody = requestFields.check((context) => {
  const { types: wanted, format: shape } = context.value;
  if (wanted === undefined || shape !== "compact") return;
  const message = 'Expected no types in the format "compact", which has only organic results.';
  context.issues.push({ code: "custom", input: wanted, path: ["types"], message });
});

type RequestedQuery = z.infer<typeof searchRequestBody>;

/**
 * Reads the parsed JSON body of a search request into the query that is executed: with all defaults, and with location, language
 * and domain in canonical form.
 * @throws {CallerError} `bad_request` with `issues: [{path, message}]`; `not_implemented` if only the engine is unknown.
 */
export function readQuery(body: unknown): Query {
  const read = searchRequestBody.safeParse(body);
  if (!read.success)
    throw new CallerError("bad_request", { issues: issuesOf(read.error, Object.keys(searchRequestBody.shape)) });
  const query = inContractOrder(read.data);
  if (!engines.includes(query.engine)) {
    throw new CallerError("not_implemented", { engine: truncate(query.engine), supported: engines });
  }
  return query;
}

/** Those fields of a request body that are valid by themselves, canonical like those of a query, without the engine. */
export function readValidFields(body: unknown): Partial<Omit<Query, "engine">> {
  if (typeof body !== "object" || body === null) return {};
  const sent = new Map<string, unknown>(Object.entries(body));
  const { engine: _any, ...schemas } = searchRequestBody.shape;
  const read = Object.entries(schemas).flatMap(([name, schema]) => {
    const field = sent.has(name) ? schema.safeParse(sent.get(name)) : undefined;
    return field?.success && field.data !== undefined ? [[name, field.data]] : [];
  });
  return Object.fromEntries(read);
}

/** SHA-256 in hexadecimal of the query's JSON. Requests for the same search have the same fingerprint. */
export const queryFingerprint = (query: Query): string => hash("sha256", JSON.stringify(inContractOrder(query)));

/** What the engine searches: the query without the fields that only filter and shape its answer afterwards. */
export function searchedPart(
  query: Pick<Query, "keyword" | "engine" | "location" | "language" | "device" | "depth">,
): Query {
  const { keyword: words, engine, location: from, language: spoken, device, depth } = query;
  return { keyword: words, engine, location: from, language: spoken, device, depth };
}

/** The fields in the contract's order, so that equal queries have equal bytes. Fields that the caller left out are missing. */
function inContractOrder(query: RequestedQuery): Query {
  const { targetDomain: domain, types: wanted, format: shape, maxAgeSeconds, include: further } = query;
  return {
    ...searchedPart(query),
    ...(domain !== undefined && { targetDomain: domain }),
    ...(wanted !== undefined && { types: wanted }),
    ...(shape !== undefined && { format: shape }),
    ...(maxAgeSeconds !== undefined && { maxAgeSeconds }),
    ...(further !== undefined && { include: further }),
  };
}

/** A string that has to be there. */
export function requiredString() {
  return z.string({
    error: ({ input }) => (input === undefined ? "This field is required." : "Expected a string."),
  });
}

/** A string of visible, well-formed text. */
function text() {
  return requiredString().check(
    // One check instead of several refinements, so that each text has at most one issue.
    (context) => {
      const problem = textProblem(context.value);
      if (problem !== undefined) {
        context.issues.push({ code: "custom", input: context.value, message: problem, continue: false });
      }
    },
  );
}

/** Why a text cannot be shown as it was typed, in a list or a log: it is invisible, or changes the text around it. Undefined if it can. */
export function textProblem(typed: string): string | undefined {
  if (controlCharacter.test(typed)) return "Expected text without control characters and line breaks.";
  if (!typed.isWellFormed()) return "Expected well-formed Unicode, without lone surrogates.";
  if (bidirectionalOverride.test(typed)) return "Expected text without bidirectional override and isolate characters.";
  if (typed.replace(invisible, "") === "") return "Expected at least one visible character.";
  return undefined;
}

/** Text of any kind as a keyword may be: in one line, without what the caller of a search may not send. */
export const inOneLine = (typed: string): string =>
  typed
    .toWellFormed()
    .split(bidirectionalOverride)
    .join("")
    .split(/[\s\p{Cc}]+/u)
    .join(" ")
    .trim();

/** Counts code points. A text never has more code points than code units, so a short one needs no counting. */
export function hasAtMost(typed: string, charactersMax: number): boolean {
  return typed.length <= charactersMax || truncate(typed, charactersMax) === typed;
}

function refuse(context: z.RefinementCtx, input: string, message: string): never {
  context.issues.push({ code: "custom", input, message });
  return z.NEVER;
}
