import { z } from "zod";
import { type ErrorCode, errors } from "./errors.ts";
import { requestId } from "./ids.ts";
import { issuesMax } from "./query/query.ts";

/** The shape of every error as its caller gets it: what `details` tells for each code, and the bodies by status. */

/** Why a request is no valid one, where that is not a matter of its fields. */
const badRequestReasons = [
  "body_missing",
  "body_not_json",
  "body_not_utf8",
  "body_too_large",
  "body_incomplete",
  "body_unreadable",
  "content_type_not_json",
  "content_encoding_unsupported",
  "charset_not_utf8",
  "json_not_accepted",
  "idempotency_key_reused",
  "malformed_http",
  "one_host_header_expected",
  "too_many_headers",
  "headers_too_large",
  "transfer_encoding_not_chunked",
  "expectation_unknown",
  "request_too_slow",
] as const;

const unavailableReasons = [
  "redis_unreachable",
  "postgres_unreachable",
  "no_workers",
  "queue_too_long",
  "shutting_down",
  "balance_unreadable",
] as const;
export type UnavailableReason = (typeof unavailableReasons)[number];

const mils = (description: string) =>
  z
    .int()
    .min(0)
    .meta({ description: `${description}, in mils.` });
const milliseconds = (description: string) =>
  z
    .int()
    .min(0)
    .meta({ description: `${description}, in milliseconds.` });
const planCode = z.string().meta({ description: "The organization's plan." });
const nothing = z.strictObject({}).meta({ description: "Nothing more is told." });

const issue = z
  .strictObject({
    path: z.string().meta({ description: 'The field or header; `""` for the body as a whole.' }),
    message: z.string().meta({ description: "What was expected." }),
  })
  .meta({ description: "One thing that is wrong with the request." });

const told = <Code extends ErrorCode, Details extends z.ZodType>(code: Code, details: Details) =>
  z
    .strictObject({
      code: z.literal(code).meta({ description: "What to switch on." }),
      message: z.string().meta({ description: "For people. It may change.", examples: [errors[code].says] }),
      details,
    })
    .meta({ description: errors[code].says });

/** What stands under `error`, by code. */
export const errorDefinitions = {
  bad_request: told(
    "bad_request",
    z
      .strictObject({
        issues: z.array(issue).max(issuesMax).exactOptional().meta({ description: "Each field that is wrong." }),
        reason: z.enum(badRequestReasons).exactOptional().meta({ description: "What is wrong beside the fields." }),
      })
      .meta({ description: "Either `issues` or `reason`." }),
  ),
  query_rejected: told(
    "query_rejected",
    z
      .strictObject({
        reason: z.enum(["unsupported", "refused_by_provider"]).meta({
          description:
            "`unsupported`: no configured provider can honour the field. `refused_by_provider`: one refused it.",
        }),
        field: z.enum(["keyword", "location", "language", "device"]).meta({ description: "The field to change." }),
      })
      .meta({ description: "What to change." }),
  ),
  unauthenticated: told("unauthenticated", nothing),
  plan_required: told(
    "plan_required",
    z
      .strictObject({
        plan: planCode,
        action: z.literal("upgrade").meta({ description: "What would help." }),
        reason: z
          .literal("suspended")
          .exactOptional()
          .meta({ description: "There where the organization is suspended; then its operator has to act." }),
      })
      .meta({ description: "The plan that is not enough." }),
  ),
  out_of_credits: told(
    "out_of_credits",
    z
      .strictObject({
        priceMils: mils("The price of the search"),
        availableMils: mils("What can be spent now"),
        heldMils: mils("What searches in flight hold; it may come back"),
        action: z.literal("topup").meta({ description: "What would help." }),
        topupUrl: z.string().meta({ description: "Where to top up: a URL, or a path on this host." }),
      })
      .meta({ description: "An empty balance is told from one that is tied up in flight by `heldMils`." }),
  ),
  not_found: told("not_found", nothing),
  method_not_allowed: told("method_not_allowed", nothing),
  rate_limited: told(
    "rate_limited",
    z
      .strictObject({
        reason: z.enum(["window", "concurrency"]).meta({
          description: "`window`: no room in the rate window. `concurrency`: too many searches in flight.",
        }),
        retryAfterMs: milliseconds("When to come back"),
        limit: z
          .int()
          .min(0)
          .meta({ description: "Requests in a window, or searches in flight, that the plan allows." }),
        windowSeconds: z
          .int()
          .min(1)
          .exactOptional()
          .meta({ description: "How long a window is, in seconds; only for `window`." }),
      })
      .meta({ description: "Which limit was met, and when to come back." }),
  ),
  internal_error: told("internal_error", nothing),
  not_implemented: told(
    "not_implemented",
    z
      .strictObject({
        engine: z.string().meta({ description: "The engine that was asked for." }),
        supported: z.array(z.string()).meta({ description: "The engines that there are." }),
      })
      .meta({ description: "Which engines there are." }),
  ),
  engine_error: told(
    "engine_error",
    z
      .strictObject({
        reason: z.enum(["provider_unavailable", "provider_refused", "unreadable_answer"]).meta({
          description:
            "`provider_unavailable`: down or overrun. `provider_refused`: the operator's account or our request was refused. " +
            "`unreadable_answer`: its answer could not be read.",
        }),
      })
      .meta({ description: "How the last provider failed." }),
  ),
  unavailable: told(
    "unavailable",
    z
      .strictObject({
        reason: z.enum(unavailableReasons).meta({ description: "What is missing." }),
        retryAfterMs: milliseconds("When to come back"),
      })
      .meta({ description: "What is missing, and when to come back." }),
  ),
  engine_timeout: told(
    "engine_timeout",
    z
      .strictObject({ timeoutMs: milliseconds("The deadline that passed") })
      .meta({ description: "The deadline of a search." }),
  ),
} satisfies Record<ErrorCode, z.ZodType>;

const body = <Told extends z.ZodType>(error: Told) =>
  z.strictObject({ requestId, error }).meta({ description: "What went wrong." });

/** The body of an error of an operation, by status. */
export const errorBodySchemas = {
  400: body(z.discriminatedUnion("code", [errorDefinitions.bad_request, errorDefinitions.query_rejected])),
  401: body(errorDefinitions.unauthenticated),
  402: body(z.discriminatedUnion("code", [errorDefinitions.plan_required, errorDefinitions.out_of_credits])),
  429: body(errorDefinitions.rate_limited),
  500: body(errorDefinitions.internal_error),
  501: body(errorDefinitions.not_implemented),
  502: body(errorDefinitions.engine_error),
  503: body(errorDefinitions.unavailable),
  504: body(errorDefinitions.engine_timeout),
};

export type ErrorStatus = keyof typeof errorBodySchemas;
