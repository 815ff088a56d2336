#!/usr/bin/env node
import { parseArgs } from "node:util";
import { type SearchAnswer, type SearchRequest, Serpmill, SerpmillError } from "./serpmill.ts";

const help = `Usage: serpmill [options] KEYWORD...

Searches Google over the Serpmill API at SERPMILL_URL, with the token in SERPMILL_TOKEN.
Each KEYWORD is one charged search. Quote a keyword of several words: serpmill "best coffee beans".

Options:
  --location PLACE    where the search is made from, such as "Austin, TX"
  --language NAME     its name or code, such as de
  --device DEVICE     desktop or mobile
  --depth N           number of organic results, 1 to 100
  --domain HOST       show only results on this domain
  --json              print each result as one line of JSON
  -h, --help          print this text
`;

const options = {
  location: { type: "string" },
  language: { type: "string" },
  device: { type: "string" },
  depth: { type: "string" },
  domain: { type: "string" },
  json: { type: "boolean", default: false },
  help: { type: "boolean", short: "h", default: false },
} as const;

/** Prints the results of each keyword. The exit code is 1 if a search failed, and 2 if the command is wrong. */
async function main(): Promise<number> {
  const { values, positionals: keywords } = parseArgs({ options, allowPositionals: true });
  if (values.help) return print(help);
  if (keywords.length === 0) throw new TypeError("Expected a keyword.");
  const { location, language, depth, domain: targetDomain } = values;
  // The API checks the values, and names the field that is wrong.
  const device = values.device as SearchRequest["device"];
  const given = { location, language, device, depth: depth === undefined ? undefined : Number(depth), targetDomain };
  const client = new Serpmill();
  const requests = keywords.map(
    (keyword) => JSON.parse(JSON.stringify({ keyword, ...given })) as SearchRequest & { format?: "full" },
  );
  let exitCode = 0;
  for await (const { request, answer, error } of client.searchMany(requests)) {
    if (answer) print(values.json ? lines(request.keyword, answer) : table(request.keyword, answer));
    else exitCode = report(error, request.keyword);
  }
  return exitCode;
}

const lines = (keyword: string, { results }: SearchAnswer) =>
  results.map((result) => `${JSON.stringify({ keyword, ...result })}\n`).join("");

function table(keyword: string, { results, creditsCharged, creditsRemaining }: SearchAnswer): string {
  const rows = results.map(({ rank, type, title, url }) => [String(rank), type, title, url].map(printable));
  const [ranks, types] = [0, 1].map((column) => Math.max(0, ...rows.map((row) => row[column]?.length ?? 0)));
  const titleMax = Math.max(20, Math.floor(((process.stdout.columns ?? 120) - (ranks ?? 0) - (types ?? 0) - 6) / 2));
  const body = rows.map(([rank = "", type = "", title = "", url = ""]) =>
    [rank.padStart(ranks ?? 0), type.padEnd(types ?? 0), title.slice(0, titleMax).padEnd(titleMax), url].join("  "),
  );
  const count = results.length === 1 ? "1 result" : `${results.length} results`;
  const cost = `${printable(keyword)}: ${count} for ${creditsCharged} mils, ${creditsRemaining} left`;
  return [...body, cost, ""].join("\n");
}

/** Without control characters, which could drive the terminal. */
const printable = (text: string) => text.replaceAll(/\p{Cc}/gu, " ");

function report(
  { message, code, requestId, help: address, mayBeCharged, idempotencyKey }: SerpmillError,
  keyword: string,
) {
  const charge = mayBeCharged && `may be charged; Idempotency-Key ${idempotencyKey}`;
  const facts = [requestId, address, charge].filter(Boolean).join(", ");
  // One that is too long is an error itself.
  const named = keyword.length > 80 ? `${keyword.slice(0, 79)}…` : keyword;
  process.stderr.write(printable(`${named}: ${code}: ${message}${facts && ` (${facts})`}`) + "\n");
  return 1;
}

function print(text: string): number {
  process.stdout.write(text);
  return 0;
}

process.stdout.on("error", ({ code, message }: NodeJS.ErrnoException) => {
  if (code === "EPIPE") process.exit(); // Its reader has left, as `head` does.
  process.stderr.write(`The output cannot be written: ${message}\n`);
  process.exit(1);
});

main().then(
  (exitCode) => {
    process.exitCode = exitCode;
  },
  (error: unknown) => {
    if (!(error instanceof SerpmillError))
      process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n${help}`);
    process.exitCode = error instanceof SerpmillError ? 1 : 2;
  },
);
