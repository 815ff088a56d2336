import { z } from "zod";
import { alternatives } from "./closest-names.ts";
import type { Issue } from "./issues.ts";

/**
 * What is wrong, for people, by the code of an error and its `details.reason` (`""` where it has none). `{field}` stands for
 * a field of the details, milliseconds for seconds. Of several texts the first one counts whose fields the details have.
 */
const texts = {
  bad_request: {
    body_missing: "The request has no body. Expected a JSON object.",
    body_not_json: "The body is not valid JSON. Expected a JSON object.",
    body_not_utf8: "The body is not valid UTF-8.",
    body_too_large: "The body is too large. The API reads at most 16 KiB.",
    body_unreadable: "The body cannot be decompressed by its `Content-Encoding`.",
    content_type_not_json: "The header `Content-Type` must be `application/json`.",
    content_encoding_unsupported: "This `Content-Encoding` is not supported. Use gzip, deflate or none.",
    charset_not_utf8: "The charset in the header `Content-Type` must be utf-8.",
    json_not_accepted: "The header `Accept` excludes `application/json`, which every answer is.",
    idempotency_key_reused: "This Idempotency-Key belongs to another query. Use a new key for a new query.",
    malformed_http: "The request is not valid HTTP.",
    one_host_header_expected: "The request must have exactly one header `Host`.",
    too_many_headers: "The request has too many headers.",
    headers_too_large: "The headers are too large. The API reads at most 8 kB of them.",
    transfer_encoding_not_chunked: "The only supported `Transfer-Encoding` is chunked.",
    expectation_unknown: "The only supported value of the header `Expect` is 100-continue.",
    request_too_slow: "The request took longer than 8 s to arrive, or its headers longer than 5 s.",
  },
  query_rejected: {
    unsupported: "No search provider of this service supports the `{field}` of this query. Change or omit that field.",
    refused_by_provider: "A search provider rejects the `{field}` of this query. Change that field.",
    location_unknown: [
      "The place in `{field}` is not known in its country. Did you mean {candidates}?",
      "The place in `{field}` is not known in its country. Check its spelling, add its region, or search from a larger place around it.",
    ],
    location_ambiguous: "Several places have the name in `{field}`. Expected {candidates}.",
  },
  unauthenticated: {
    scope: "The token is valid, but lacks the scope `{scope}` that this operation needs. Use a token that has it.",
  },
  plan_required: {
    "": "The organization's plan `{plan}` does not include this operation.",
    suspended: "The operator has suspended the organization. Contact the operator of this service.",
    max_depth: "The organization's plan `{plan}` includes searches for at most {maxDepth} organic results.",
  },
  out_of_credits: {
    "":
      "The organization's credit does not cover this search: it costs {priceMils} mils, {availableMils} are available, and " +
      "searches in flight hold {heldMils}. Top up at {topupUrl}.",
    daily_limit: limitTexts("The organization's daily"),
    monthly_limit: limitTexts("The organization's monthly"),
    token_limit: limitTexts("The token's", " for a {period}"),
  },
  // At a door.
  not_found: { "": "There is no such path. Expected {paths}." },
  rate_limited: {
    window: "The rate window of {limit} requests in {windowSeconds} s is full. Retry in {retryAfterMs}.",
    concurrency: "As many searches are in flight as the organization's plan allows: {limit}. Retry when one has ended.",
    unpaid_calls:
      "In the last hour too many calls to search providers were left unpaid, by searches that were disconnected, cancelled or not " +
      "taken. The organization's plan allows {limit}, and one token half of them. Retry in {retryAfterMs}, or send an Idempotency-Key.",
    unread: "{limit} bytes of earlier answers are not read yet. Read them, then retry.",
    refused:
      "More than {limit} requests in {windowSeconds} s were refused, replayed or called no tool. Retry in {retryAfterMs}.",
  },
  not_implemented: { "": 'The engine "{engine}" is not implemented. Expected {supported}.' },
  engine_error: {
    provider_unavailable: "The search provider is down or overloaded. Nothing was charged; retry later.",
    provider_refused:
      "The search provider refused the request or the operator's account there. Nothing was charged. If it goes on, tell the " +
      "operator of this service.",
    unreadable_answer:
      "The search provider's answer could not be read. Nothing was charged. Retry once; if it goes on, tell the operator of this service.",
  },
  unavailable: {
    redis_unreachable: "The service cannot reach its Redis right now. Retry in {retryAfterMs}.",
    postgres_unreachable: "The service cannot reach its Postgres right now. Retry in {retryAfterMs}.",
    token_lookups_full: "Too many unknown tokens wait to be checked. Retry in {retryAfterMs}.",
    no_workers: "No worker of the service is running. Retry in {retryAfterMs}.",
    queue_too_long: "Too many searches wait for this one to be answered in time. Retry in {retryAfterMs}.",
    shutting_down: "This process of the service is stopping. Retry in {retryAfterMs}.",
    balance_unreadable: "The balance cannot be read right now. Retry in {retryAfterMs}.",
  },
  engine_timeout: {
    "": "No answer in time ({timeoutMs} at most). Nothing was charged, unless an Idempotency-Key was sent: then the answer may be kept under it.",
    still_running:
      "No answer within {timeoutMs}, but the search still runs, and its answer will be charged. The same search, repeated within " +
      "60 s of its start, gets that answer without another charge.",
  },
} satisfies Record<string, Readonly<Record<string, string | readonly string[]>>>;
const textsByCode = new Map<string, Readonly<Record<string, string | readonly string[]>>>(Object.entries(texts));

type ReasonedCode = keyof typeof texts;
export type ErrorReason<Code extends ReasonedCode> = Exclude<keyof (typeof texts)[Code], "">;

/** The reasons that the details of an error with this code may have, in the order of the texts. */
export function reasonsOf<Code extends ReasonedCode>(code: Code): ErrorReason<Code>[] {
  // Object.keys returns strings.
  return Object.keys(texts[code]).filter((reason) => reason !== "") as ErrorReason<Code>[];
}

/** For a limit that the search would exceed, with what is left of it, and without. */
function limitTexts(whose: string, period = ""): string[] {
  const renewal = "The limit renews at {renewsAt}, unless its payer raises it before.";
  return [
    `${whose} spending limit of {limitMils} mils${period} does not cover this search: it costs {priceMils} mils, ` +
      `{availableMils} are left, and searches in flight hold {heldMils}. ${renewal}`,
    `${whose} spending limit${period} does not cover this search. ${renewal}`,
  ];
}

const issuesSchema = z.array(z.object({ path: z.string(), message: z.string() })).catch([]);

/** The fields of a `bad_request` that are not valid. Most errors have none. */
export const issuesIn = ({ issues }: Readonly<Record<string, unknown>>): Issue[] => issuesSchema.parse(issues);

/**
 * The text of an error: what is wrong by itself, without a look into the details.
 * @returns undefined if there is none for these details, such as those of a process of another version.
 */
export function errorText(code: string, details: Readonly<Record<string, unknown>>): string | undefined {
  const [issue, ...others] = issuesIn(details);
  if (issue) {
    const more = others.length === 0 ? "" : ` The details list ${others.length} more.`;
    return `${issue.path === "" ? "" : `\`${issue.path}\`: `}${issue.message}${more}`;
  }
  const { reason = "" } = details;
  const ofCode = textsByCode.get(code) ?? {};
  if (typeof reason !== "string" || !Object.hasOwn(ofCode, reason)) return undefined;
  return [ofCode[reason] ?? []]
    .flat()
    .map((text) => filled(text, details))
    .find((text) => text !== undefined);
}

const placeholder = /\{(\w+)\}/g;

/** The text with the fields of the details. @returns undefined if they lack one. */
function filled(text: string, details: Readonly<Record<string, unknown>>): string | undefined {
  const values = new Map([...text.matchAll(placeholder)].map(([, name = ""]) => [name, shown(name, details[name])]));
  if ([...values.values()].includes("")) return undefined;
  return text.replace(placeholder, (_, name: string) => values.get(name) ?? "");
}

function shown(name: string, value: unknown): string {
  if (Array.isArray(value)) return alternatives(value.map(String));
  // People wait by the second, as the header Retry-After says.
  if (name === "timeoutMs" && typeof value === "number") return `${Math.round(value / 100) / 10} s`;
  if (typeof value === "number") return name.endsWith("Ms") ? `${Math.ceil(value / 1_000)} s` : String(value);
  return typeof value === "string" ? value : "";
}
