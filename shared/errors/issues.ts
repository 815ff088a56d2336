import type { z } from "zod";
import { closestNames, didYouMean } from "./closest-names.ts";
import { truncate } from "./truncate.ts";

// Two letters in the wrong order are two typos: `depht`.
const lettersPerTypo = 2.5;

/** The most issues of one request that an answer lists. */
export const issuesMax = 20;

/** One field that is not valid, and what was expected. `path` is "" for the body as a whole. */
export type Issue = { path: string; message: string };

/**
 * What is wrong with the body of a search. Unknown fields come first: a misspelled name explains why a field is missing.
 * @param fieldNames the fields that a search has.
 */
export function issuesOf(error: z.ZodError, fieldNames: readonly string[]): Issue[] {
  const unknown = error.issues.flatMap((issue) => (issue.code === "unrecognized_keys" ? issue.keys : []));
  const invalid = error.issues.flatMap((issue): Issue[] => {
    if (issue.code === "unrecognized_keys") return [];
    const path = issue.path.join(".");
    return [{ path, message: path === "" ? "Expected a JSON object as the body." : issue.message }];
  });
  const listed = unknown.slice(0, issuesMax).map((name) => unknownField(name, fieldNames));
  return [...listed, ...invalid].slice(0, issuesMax);
}

function unknownField(name: string, fieldNames: readonly string[]): Issue {
  // A name is the caller's text: Postgres takes no NUL, and would refuse the rows that are logged with it.
  const path = truncate(name).replaceAll(/\p{Cc}/gu, "\ufffd");
  const suggestion = didYouMean(
    closestNames(foldField(path), new Map(fieldNames.map((one) => [foldField(one), one])), lettersPerTypo),
  );
  return { path, message: `Unknown field. Expected one of ${fieldNames.join(", ")}.${suggestion}` };
}

/** `target_domain` and `Target-Domain` as `targetdomain`. */
const foldField = (name: string) => name.toLowerCase().replace(/[^a-z]/g, "");
