import { z } from "zod";
import { type ErrorCode, errors } from "../shared/errors.ts";
import { requestId } from "../shared/ids.ts";
import { headerScopes } from "../shared/organizations/organizations.ts";
import { depthMax } from "../shared/query/depth.ts";
import { candidatesMax } from "../shared/query/locations.ts";
import { issuesMax } from "../shared/errors/issues.ts";

/** The schemas of all errors: `details` by code, and response bodies by status. */

/** Reasons for `bad_request` that do not concern a single field. */
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
  "token_lookups_full",
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
const noDetails = z.strictObject({}).meta({ description: "No details." });

const issue = z
  .strictObject({
    path: z.string().meta({ description: 'The field or header; `""` for the body as a whole.' }),
    message: z.string().meta({ description: "What was expected." }),
  })
  .meta({ description: "One invalid field or header." });

const errorSchema = <Code extends ErrorCode, Details extends z.ZodType>(code: Code, details: Details) =>
  z
    .strictObject({
      code: z.literal(code).meta({ description: "The error code, for programs." }),
      message: z
        .string()
        .meta({ description: "What is wrong, for people. It may change.", examples: [errors[code].message] }),
      details,
    })
    .meta({ description: errors[code].message });

/** The object under `error`, by code. */
export const errorDefinitions = {
  bad_request: errorSchema(
    "bad_request",
    z
      .strictObject({
        issues: z.array(issue).max(issuesMax).exactOptional().meta({ description: "The invalid fields." }),
        reason: z.enum(badRequestReasons).exactOptional().meta({ description: "What is wrong, if it is not a field." }),
      })
      .meta({ description: "Either `issues` or `reason`." }),
  ),
  query_rejected: errorSchema(
    "query_rejected",
    z
      .strictObject({
        reason: z.enum(["unsupported", "refused_by_provider", "location_unknown", "location_ambiguous"]).meta({
          description:
            "`unsupported`: no configured provider supports the field. `refused_by_provider`: a provider rejected it. " +
            "`location_unknown`: no provider lists the city or region, or it is not known. `location_ambiguous`: there are several of that name.",
        }),
        field: z.enum(["keyword", "location", "language", "device"]).meta({ description: "The field to change." }),
        candidates: z
          .array(z.string())
          .max(candidatesMax)
          .exactOptional()
          .meta({
            description:
              "Locations to choose from, each of which can be sent as `location`: those of the same name, or similar ones. " +
              "Present with `location_unknown`, where it may be empty, and `location_ambiguous`.",
          }),
      })
      .meta({ description: "Which field to change, and why." }),
  ),
  unauthenticated: errorSchema(
    "unauthenticated",
    z
      .strictObject({
        reason: z
          .literal("scope")
          .exactOptional()
          .meta({ description: "Present if the token is valid, but lacks the scope that the operation needs." }),
        scope: z.enum(headerScopes).exactOptional().meta({ description: "The scope that is missing; with `reason`." }),
      })
      .meta({ description: "Empty for a token that is missing, malformed, unknown, expired or revoked." }),
  ),
  plan_required: errorSchema(
    "plan_required",
    z
      .strictObject({
        plan: planCode,
        action: z.enum(["upgrade", "contact_operator"]).meta({
          description: "What the organization can do: `contact_operator` if it is suspended, otherwise `upgrade`.",
        }),
        reason: z
          .enum(["suspended", "max_depth"])
          .exactOptional()
          .meta({
            description:
              "`suspended`: the operator has suspended the organization. `max_depth`: the plan has no searches of this depth. " +
              "Missing if the plan has no searches at all.",
          }),
        maxDepth: z
          .int()
          .min(1)
          .max(depthMax)
          .exactOptional()
          .meta({ description: "The largest depth that the plan includes; with `max_depth`." }),
      })
      .meta({ description: "The plan, and what would help." }),
  ),
  out_of_credits: errorSchema(
    "out_of_credits",
    z
      .strictObject({
        priceMils: mils("The price of the search"),
        availableMils: mils("The available credit, or what a limit leaves of it"),
        heldMils: mils("The amount held by searches in flight, which is released if they fail"),
        action: z.enum(["topup", "raise_limit"]).meta({
          description: "What the organization can do: `raise_limit`, or wait until it renews, if a limit was reached.",
        }),
        topupUrl: z.string().meta({ description: "Where to top up: a URL, or a path on this host." }),
        reason: z.enum(["daily_limit", "monthly_limit", "token_limit"]).exactOptional().meta({
          description:
            "Present with `period` and `renewsAt` if a limit was reached: of the organization, or of the token.",
        }),
        period: z.enum(["day", "month"]).exactOptional().meta({ description: "The UTC day or the calendar month." }),
        limitMils: mils("The limit. Absent if less counts against it by now").exactOptional(),
        renewsAt: z.iso.datetime().exactOptional().meta({ description: "When the limit renews, in UTC." }),
      })
      .meta({
        description:
          "The price and the available credit, or what is left of the limit. If `heldMils` is not 0, some of it may be released soon.",
      }),
  ),
  not_found: errorSchema("not_found", noDetails),
  method_not_allowed: errorSchema("method_not_allowed", noDetails),
  rate_limited: errorSchema(
    "rate_limited",
    z
      .strictObject({
        reason: z.enum(["window", "concurrency", "unpaid_calls", "unread", "refused"]).meta({
          description:
            "`window`: the rate window is full. `concurrency`: too many searches in flight. `unpaid_calls`: in the last hour " +
            "too many provider calls were left unpaid by searches that were disconnected, cancelled or whose answers were not " +
            "taken. `unread`: too many bytes of earlier answers are not read yet. `refused`: too many requests were refused, replayed or called no tool.",
        }),
        retryAfterMs: milliseconds("When to retry"),
        limit: z.int().min(0).meta({
          description: "The limit: requests per window, searches in flight, unpaid provider calls an hour, or bytes.",
        }),
        windowSeconds: z
          .int()
          .min(1)
          .exactOptional()
          .meta({ description: "The length of the window, in seconds; for `window`, `unpaid_calls` and `refused`." }),
      })
      .meta({ description: "Which limit was reached, and when to retry." }),
  ),
  internal_error: errorSchema("internal_error", noDetails),
  not_implemented: errorSchema(
    "not_implemented",
    z
      .strictObject({
        engine: z.string().meta({ description: "The requested engine." }),
        supported: z.array(z.string()).meta({ description: "The supported engines." }),
      })
      .meta({ description: "The requested engine and the supported ones." }),
  ),
  engine_error: errorSchema(
    "engine_error",
    z
      .strictObject({
        reason: z.enum(["provider_unavailable", "provider_refused", "unreadable_answer"]).meta({
          description:
            "`provider_unavailable`: down or overloaded. `provider_refused`: it rejected the operator's account or the request. " +
            "`unreadable_answer`: its answer could not be parsed.",
        }),
      })
      .meta({ description: "How the last provider failed." }),
  ),
  unavailable: errorSchema(
    "unavailable",
    z
      .strictObject({
        reason: z.enum(unavailableReasons).meta({ description: "Why the service cannot take the request." }),
        retryAfterMs: milliseconds("When to retry"),
      })
      .meta({ description: "Why, and when to retry." }),
  ),
  engine_timeout: errorSchema(
    "engine_timeout",
    z
      .strictObject({ timeoutMs: milliseconds("The deadline that has passed") })
      .meta({ description: "The deadline of the search." }),
  ),
} satisfies Record<ErrorCode, z.ZodType>;

const body = <ErrorSchema extends z.ZodType>(error: ErrorSchema) =>
  z.strictObject({ requestId, error }).meta({ description: "The error." });

/** The response body of an error, by status. */
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
