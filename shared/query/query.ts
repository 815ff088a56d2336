import { createHash } from "node:crypto";
import { z } from "zod";
import { readDomain } from "./domains.ts";
import { CallerError } from "../errors.ts";
import { readLanguage } from "./languages.ts";
import { readLocation } from "./locations.ts";
import { truncate } from "./truncate.ts";

/** The search engines. Any other name is answered with `not_implemented`. */
export const engines = ["google"];

const keywordCharactersMax = 700;
const locationCharactersMax = 255;
const depthMax = 100;
/** The most issues of one request that an answer lists. */
export const issuesMax = 20;

const controlCharacter = /\p{Cc}/u;
/** These reorder the text around them on a page or in a log. The marks LRM and RLM do not, so they are allowed. */
const bidirectionalOverride = /[\u202a-\u202e\u2066-\u2069]/;
/** Characters without a visible form: white space, format characters, fillers, and the empty braille cell. */
const invisible = /[\p{White_Space}\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]+/gu;

/** A search as it is executed: complete, canonical, and always serialized to the same JSON. */
export const querySchema = z.object({
  keyword: z.string().meta({ description: "The keyword, trimmed." }),
  engine: z.string().meta({ description: "The search engine." }),
  location: z.string().meta({
    description: "The location in canonical form, without spaces after commas.",
    examples: ["Austin,Texas,United States"],
  }),
  language: z.string().meta({ description: "The language by its English name.", examples: ["German"] }),
  device: z.enum(["desktop", "mobile"]).meta({ description: "The kind of page." }),
  depth: z.int().min(1).max(depthMax).meta({ description: "The number of organic results that were requested." }),
  targetDomain: z
    .string()
    .exactOptional()
    .meta({ description: "The domain that the results are limited to. Missing if the search has none." }),
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
      "Where the search is made from: a country, or a city or region in it. The last part is the country: its English name, " +
      "a usual short form, a name in one of its official languages, or its ISO 3166-1 code. The country is never guessed.",
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
  device: z.enum(["desktop", "mobile"], { error: 'Expected "desktop" or "mobile".' }).default("desktop").meta({
    description: "The kind of page. If no provider can search it, the answer is 400 `query_rejected`.",
  }),
  depth: z
    .int({ error: `Expected a whole number from 1 to ${depthMax}.`, abort: true })
    .min(1, { error: `Expected a whole number from 1 to ${depthMax}.` })
    .max(depthMax, { error: `Expected a whole number from 1 to ${depthMax}.` })
    .default(10)
    .meta({
      description: "The number of organic results to return. The price does not depend on it.",
      examples: [10],
    }),
  targetDomain: targetDomain.exactOptional().meta({
    description:
      "Return only results on this domain or its subdomains. They keep their ranks among all results. A host name; " +
      "`https://`, `www.` and a path are removed.",
    ...typedText,
    examples: ["example.com"],
  }),
});

/**
 * Reads the parsed JSON body of a search request into the query that is executed: with all defaults, and with location, language
 * and domain in canonical form.
 * @throws {CallerError} `bad_request` with `issues: [{path, message}]`; `not_implemented` if only the engine is unknown.
 */
export function readQuery(body: unknown): Query {
  const read = searchRequestBody.safeParse(body);
  if (!read.success) throw new CallerError("bad_request", { issues: issuesOf(read.error) });
  const query = inContractOrder(read.data);
  if (!engines.includes(query.engine)) {
    throw new CallerError("not_implemented", { engine: truncate(query.engine), supported: engines });
  }
  return query;
}

/** SHA-256 in hexadecimal of the query's JSON. Requests for the same search have the same fingerprint. */
export function queryFingerprint(query: Query): string {
  return createHash("sha256")
    .update(JSON.stringify(inContractOrder(query)))
    .digest("hex");
}

/** The fields in the contract's order, so that equal queries have equal bytes. */
function inContractOrder(query: Query): Query {
  const { targetDomain: domain, keyword: words, engine, location: from, language: spoken, device, depth } = query;
  const fields = { keyword: words, engine, location: from, language: spoken, device, depth };
  return domain === undefined ? fields : { ...fields, targetDomain: domain };
}

/** A string of visible, well-formed text. */
function text() {
  return z
    .string({ error: ({ input }) => (input === undefined ? "This field is required." : "Expected a string.") })
    .check(
      // One check instead of several refinements, so that each text has at most one issue.
      (context) => {
        const problem = problemOf(context.value);
        if (problem !== undefined) {
          context.issues.push({ code: "custom", input: context.value, message: problem, continue: false });
        }
      },
    );
}

function problemOf(typed: string): string | undefined {
  if (controlCharacter.test(typed)) return "Expected text without control characters and line breaks.";
  if (!typed.isWellFormed()) return "Expected well-formed Unicode, without lone surrogates.";
  if (bidirectionalOverride.test(typed)) return "Expected text without bidirectional override and isolate characters.";
  if (typed.replace(invisible, "") === "") return "Expected at least one visible character.";
  return undefined;
}

/** Counts code points. A text never has more code points than code units, so a short one needs no counting. */
function hasAtMost(typed: string, charactersMax: number): boolean {
  return typed.length <= charactersMax || truncate(typed, charactersMax) === typed;
}

function refuse(context: z.RefinementCtx, input: string, message: string): never {
  context.issues.push({ code: "custom", input, message });
  return z.NEVER;
}

function issuesOf(error: z.ZodError): { path: string; message: string }[] {
  const issues = error.issues.flatMap((issue) => {
    if (issue.code === "unrecognized_keys") {
      const message = `Unknown field. Expected one of ${Object.keys(searchRequestBody.shape).join(", ")}.`;
      return issue.keys.slice(0, issuesMax).map((key) => ({ path: truncate(key), message }));
    }
    const path = issue.path.join(".");
    return [{ path, message: path === "" ? "Expected a JSON object." : issue.message }];
  });
  return issues.slice(0, issuesMax);
}
