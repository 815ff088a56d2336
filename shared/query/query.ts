import { createHash } from "node:crypto";
import { z } from "zod";
import { readDomain } from "./domains.ts";
import { CallerError } from "../errors.ts";
import { readLanguage } from "./languages.ts";
import { readLocation } from "./locations.ts";
import { truncate } from "./fuzzy-match.ts";

/** The engines that searches run on. Any other name is understood and answered with `not_implemented`. */
export const engines = ["google"];

const keywordCharactersMax = 700;
const locationCharactersMax = 255;
const depthMax = 100;
/** How many of a request's issues are told. */
export const issuesMax = 20;

const controlCharacter = /\p{Cc}/u;
/** They reorder what a person sees on a page or in a log. The marks LRM and RLM only belong to their place, and may stay. */
const bidirectionalOverride = /[\u202a-\u202e\u2066-\u2069]/;
/** What leaves no trace on a screen: blanks, format characters, fillers, and the empty braille cell. */
const invisible = /[\p{White_Space}\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]+/gu;

/** A search as it is executed: canonical, complete, and the same JSON wherever it is written. languages.ts has the codes. */
export const querySchema = z.object({
  keyword: z.string().meta({ description: "The keyword, trimmed." }),
  engine: z.string().meta({ description: "The engine that was asked." }),
  location: z.string().meta({
    description: "The place in canonical form, without blanks after commas.",
    examples: ["Austin,Texas,United States"],
  }),
  language: z.string().meta({ description: "The language by its English name.", examples: ["German"] }),
  device: z.enum(["desktop", "mobile"]).meta({ description: "The kind of page." }),
  depth: z.int().min(1).max(depthMax).meta({ description: "How many organic results were gone down to." }),
  targetDomain: z
    .string()
    .exactOptional()
    .meta({ description: "The domain that results were kept to; left out where none was asked for." }),
});

export type Query = z.infer<typeof querySchema>;

/** What JSON Schema can tell of {@link text}. */
const typedText = { minLength: 1, pattern: "^[^\\u0000-\\u001f\\u007f-\\u009f]+$" };

const keyword = text().transform((typed, context) => {
  const trimmed = typed.trim();
  if (isAtMost(trimmed, keywordCharactersMax)) return trimmed;
  return refuse(context, typed, `Expected at most ${keywordCharactersMax} characters.`);
});

const location = text().transform((typed, context) => {
  const trimmed = typed.trim();
  if (!isAtMost(trimmed, locationCharactersMax)) {
    return refuse(context, typed, `Expected at most ${locationCharactersMax} characters.`);
  }
  const place = readLocation(trimmed);
  return "problem" in place ? refuse(context, typed, place.problem) : place.location;
});

const language = text().transform((typed, context) => {
  const known = readLanguage(typed.trim());
  return "problem" in known ? refuse(context, typed, known.problem) : known.name;
});

const targetDomain = text().transform(
  (typed, context) => readDomain(typed) ?? refuse(context, typed, 'Expected a host name, as in "example.com".'),
);

/** The body of POST /v1/serp/search and the arguments of the tool `serp.search`. Nothing is coerced. */
export const searchRequestBody = z.strictObject({
  keyword: keyword.meta({
    description: `What to search for, as typed into the engine: 1 to ${keywordCharactersMax} characters after trimming.`,
    ...typedText,
    maxLength: keywordCharactersMax,
    examples: ["best coffee beans"],
  }),
  engine: text()
    .default("google")
    .meta({
      description: "The search engine. Only `google` is implemented; any other name answers 501.",
      ...typedText,
      examples: ["google"],
    }),
  location: location.default("United States").meta({
    description:
      "Where the searcher is: a country, or a place in one, as a person writes it. The last part is the country: its " +
      "English name, a usual short form, a name in one of its official languages, or its ISO 3166-1 code. It is never guessed.",
    default: "United States",
    ...typedText,
    maxLength: locationCharactersMax,
    examples: ["Austin, Texas, United States", "Berlin, Germany", "GB"],
  }),
  language: language.default("English").meta({
    description:
      "The searcher's language: its English name, its own name, or its BCP 47 code, with dash or underscore.",
    default: "English",
    ...typedText,
    examples: ["German", "Deutsch", "pt-BR"],
  }),
  device: z.enum(["desktop", "mobile"], { error: 'Expected "desktop" or "mobile".' }).default("desktop").meta({
    description: "The kind of page. Where no provider can search as it is asked, the answer is 400 `query_rejected`.",
  }),
  depth: z
    .int({ error: `Expected a whole number from 1 to ${depthMax}.`, abort: true })
    .min(1, { error: `Expected a whole number from 1 to ${depthMax}.` })
    .max(depthMax, { error: `Expected a whole number from 1 to ${depthMax}.` })
    .default(10)
    .meta({
      description: "How many organic results to go down to. The price is the same whatever the depth.",
      examples: [10],
    }),
  targetDomain: targetDomain.exactOptional().meta({
    description:
      "Only results on this domain or its subdomains are returned, with their ranks on the whole page. A host name; " +
      "`https://`, `www.` and a path are stripped.",
    ...typedText,
    examples: ["example.com"],
  }),
});

/**
 * Reads the body of a search request, as JSON.parse gave it, into the query that is executed: defaults filled in, place,
 * language and domain in canonical form.
 * @throws {CallerError} `bad_request` with `issues: [{path, message}]`; `not_implemented` where nothing is wrong but the engine.
 */
export function readQuery(body: unknown): Query {
  const read = searchRequestBody.safeParse(body);
  if (!read.success) throw new CallerError("bad_request", { issues: issuesOf(read.error) });
  const query = inOrder(read.data);
  if (!engines.includes(query.engine)) {
    throw new CallerError("not_implemented", { engine: truncate(query.engine), supported: engines });
  }
  return query;
}

/** SHA-256 in hexadecimal of the query's JSON: two requests that mean the same search share it. */
export function queryFingerprint(query: Query): string {
  return createHash("sha256")
    .update(JSON.stringify(inOrder(query)))
    .digest("hex");
}

/** The fields in the order in which they stand in the contract, so that equal queries are equal bytes. */
function inOrder(query: Query): Query {
  const { targetDomain: domain, ...rest } = query;
  const { keyword: words, engine, location: place, language: tongue, device, depth } = rest;
  const fields = { keyword: words, engine, location: place, language: tongue, device, depth };
  return domain === undefined ? fields : { ...fields, targetDomain: domain };
}

/** A string that a person could have typed and another can read. */
function text() {
  return z
    .string({ error: ({ input }) => (input === undefined ? "This field is required." : "Expected a string.") })
    .check(
      // A function instead of refinements, because the sentence depends on what was found.
      (context) => {
        const problem = problemOf(context.value);
        if (problem !== undefined) {
          context.issues.push({ code: "custom", input: context.value, message: problem, continue: false });
        }
      },
    );
}

function problemOf(typed: string): string | undefined {
  if (controlCharacter.test(typed)) return "Expected text without control characters, line breaks among them.";
  if (!typed.isWellFormed()) return "Expected well-formed Unicode, without half of a surrogate pair.";
  if (bidirectionalOverride.test(typed)) return "Expected text without bidirectional overrides and isolates.";
  if (typed.replace(invisible, "") === "") return "Expected at least one visible character.";
  return undefined;
}

/** Characters are code points, of which a text has at most as many as code units. */
function isAtMost(typed: string, charactersMax: number): boolean {
  return typed.length <= charactersMax || truncate(typed, charactersMax) === typed;
}

function refuse(context: z.RefinementCtx, input: string, message: string): never {
  context.issues.push({ code: "custom", input, message });
  return z.NEVER;
}

function issuesOf(error: z.ZodError): { path: string; message: string }[] {
  const issues = error.issues.flatMap((issue) => {
    if (issue.code === "unrecognized_keys") {
      const message = `There is no such field. Expected are ${Object.keys(searchRequestBody.shape).join(", ")}.`;
      return issue.keys.slice(0, issuesMax).map((key) => ({ path: truncate(key), message }));
    }
    const path = issue.path.join(".");
    return [{ path, message: path === "" ? "Expected a JSON object." : issue.message }];
  });
  return issues.slice(0, issuesMax);
}
