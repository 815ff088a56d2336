import { expect, test } from "vitest";
import { places, sources } from "../harness/assertions/sources.ts";

/** Plain technical English: the actor is named, and the field's word is used. */

const unwanted: [words: RegExp, better: string][] = [
  [/\b(nobody|somebody|whoever|anybody|everybody)\b/i, "name the actor: the worker, the API, the caller"],
  [/\b(is|are|was|were) told\b|\bheard of\b/i, "returns, logs, reports, sends"],
  [/\bwhat came of\b|\bof which nothing\b/i, "the result"],
  [/\bin vain\b/i, "without success, or what happened"],
  [/\bfor good\b|\bmerely\b|\bas well as may be\b/i, "permanently, only, or nothing"],
];

/** Files that name such a word because they mean the word itself. */
const exceptions = new Set([
  "local/postgres-install.ts", // The system user `nobody`.
  "test/harness/servers/pgbouncer.ts", // The same.
  "test/docs/pages.test.ts", // Looks for the same words.
]);

// Recordings are as they came, and a migration that has run is never edited.
const untouched = /^(test\/tidy\/|test\/harness\/fixtures\/|shared\/database\/migrations\/)/;
const written = sources("{api,worker,commands,local,shared,test,docs}/**/*", "*.{md,yml}", ".env.example").filter(
  ({ path }) => /\.(ts|lua|md|js|css|html|yml|example)$/.test(path) && !untouched.test(path) && !exceptions.has(path),
);

test.each(unwanted)("code, comments and docs have no %s", (words, better) => {
  expect({ found: places(written, words, ({ lines }) => lines), better }).toEqual({ found: [], better });
});
