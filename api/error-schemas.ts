import { z } from "zod";
import { type ErrorCode, errors } from "../shared/errors.ts";
import { requestId } from "../shared/ids.ts";
import { reasonsOf } from "../shared/errors/error-messages.ts";
import { engineFailures } from "../shared/outcomes.ts";
import { headerScopes } from "../shared/organizations/organizations.ts";
import { depthMax } from "../shared/query/depth.ts";
import { natural, optional } from "../shared/schema.ts";
import { candidatesMax } from "../shared/query/locations.ts";
import { issuesMax } from "../shared/errors/issues.ts";

/** The schemas of all errors: `details` by code, and response bodies by status. */

const mils = (description: string) => natural.describe(`${description}, in mils.`);
const milliseconds = (description: string) => natural.describe(`${description}, in milliseconds.`);
const planCode = z.string().describe("The organization's plan.");

const issue = z
  .strictObject({
    path: z.string().describe('The field or header; `""` for the body as a whole.'),
    message: z.string().describe("What was expected."),
  })
  .describe("One invalid field or header.");

/** Of every error. The description of an error is its message today. */
export const errorMessage = z.string().describe("What is wrong, for people. It may change.");

/** The object under `error` with this code, whose `details` have these fields. */
function errorSchema<Code extends ErrorCode, Details extends z.ZodRawShape>(
  code: Code,
  description: string,
  details: Details,
) {
  return z
    .strictObject({
      code: z.literal(code).describe("The error code, for programs."),
      message: errorMessage,
      details: z.strictObject(details).describe(description),
    })
    .describe(errors[code].message);
}

/** The object under `error`, by code. */
export const errorDefinitions = {
  bad_request: errorSchema("bad_request", "Either `issues` or `reason`.", {
    issues: optional(z.array(issue).max(issuesMax), "The invalid fields."),
    reason: optional(z.enum(reasonsOf("bad_request")), "What is wrong, if it is not a field."),
  }),
  query_rejected: errorSchema("query_rejected", "Which field to change, and why.", {
    reason: z
      .enum(reasonsOf("query_rejected"))
      .describe(
        "`unsupported`: no configured provider supports the field. `refused_by_provider`: a provider rejected it. " +
          "`location_unknown`: no provider lists the city or region, or it is not known. `location_ambiguous`: there are several of that name.",
      ),
    field: z.enum(["keyword", "location", "language", "device"]).describe("The field to change."),
    candidates: optional(
      z.array(z.string()).max(candidatesMax),
      "Locations to choose from, each of which can be sent as `location`: those of the same name, or similar ones. " +
        "Present with `location_unknown`, where it may be empty, and `location_ambiguous`.",
    ),
  }),
  unauthenticated: errorSchema(
    "unauthenticated",
    "Empty for a token that is missing, malformed, unknown, expired or revoked.",
    {
      reason: optional(
        z.literal("scope"),
        "Present if the token is valid, but lacks the scope that the operation needs.",
      ),
      scope: optional(z.enum(headerScopes), "The scope that is missing; with `reason`."),
    },
  ),
  plan_required: errorSchema("plan_required", "The plan, and what would help.", {
    plan: planCode,
    action: z
      .enum(["upgrade", "contact_operator"])
      .describe("What the organization can do: `contact_operator` if it is suspended, otherwise `upgrade`."),
    reason: optional(
      z.enum(reasonsOf("plan_required")),
      "`suspended`: the operator has suspended the organization. `max_depth`: the plan has no searches of this depth. " +
        "Missing if the plan has no searches at all.",
    ),
    maxDepth: optional(z.int().min(1).max(depthMax), "The largest depth that the plan includes; with `max_depth`."),
  }),
  out_of_credits: errorSchema(
    "out_of_credits",
    "The price and the available credit, or what is left of the limit. If `heldMils` is not 0, some of it may be released soon.",
    {
      priceMils: mils("The price of the search"),
      availableMils: mils("The available credit, or what a limit leaves of it"),
      heldMils: natural.describe("The amount in mils that searches in flight hold. It is released if they fail."),
      action: z
        .enum(["topup", "raise_limit"])
        .describe(
          "What the organization can do: `topup`. If a limit was reached, `raise_limit`, or wait until it renews.",
        ),
      topupUrl: z.string().describe("Where to top up: a URL, or a path on this host."),
      reason: optional(
        z.enum(reasonsOf("out_of_credits")),
        "Present with `period` and `renewsAt` if a limit was reached: of the organization, or of the token.",
      ),
      period: optional(z.enum(["day", "month"]), "The UTC day or the calendar month."),
      limitMils: optional(natural, "The limit, in mils. Absent if less counts against it by now."),
      renewsAt: optional(z.iso.datetime(), "When the limit renews, in UTC."),
    },
  ),
  not_found: errorSchema("not_found", "No details.", {}),
  method_not_allowed: errorSchema("method_not_allowed", "No details.", {}),
  rate_limited: errorSchema("rate_limited", "Which limit was reached, and when to retry.", {
    reason: z
      .enum(reasonsOf("rate_limited"))
      .describe(
        "`window`: the rate window is full. `concurrency`: too many searches in flight. `unpaid_calls`: in the last hour " +
          "too many provider calls were left unpaid by searches that were disconnected, cancelled or whose answers were not " +
          "taken. `unread`: too many bytes of earlier answers are not read yet. `refused`: too many requests were refused, replayed or called no tool.",
      ),
    retryAfterMs: milliseconds("When to retry"),
    limit: natural.describe(
      "The limit: requests per window, searches in flight, unpaid provider calls an hour, or bytes.",
    ),
    windowSeconds: optional(
      z.int().min(1),
      "The length of the window, in seconds; for `window`, `unpaid_calls` and `refused`.",
    ),
  }),
  internal_error: errorSchema("internal_error", "No details.", {}),
  not_implemented: errorSchema("not_implemented", "The requested engine and the supported ones.", {
    engine: z.string().describe("The requested engine."),
    supported: z.array(z.string()).describe("The supported engines."),
  }),
  engine_error: errorSchema("engine_error", "How the last provider failed.", {
    reason: z
      .enum(engineFailures)
      .describe(
        "`provider_unavailable`: down or overloaded. `provider_refused`: it rejected the operator's account or the request. " +
          "`unreadable_answer`: its answer could not be parsed.",
      ),
  }),
  unavailable: errorSchema("unavailable", "Why, and when to retry.", {
    reason: z
      .enum(reasonsOf("unavailable"))
      .describe(
        "`no_workers`: no worker is running. `queue_too_long`: too many searches wait. `shutting_down`: this process is stopping. " +
          "`token_lookups_full`: too many unknown tokens wait to be checked. With these four nothing was charged. " +
          "`redis_unreachable` and `postgres_unreachable`: the API cannot reach its Redis or its Postgres. `balance_unreadable`: " +
          "the balance cannot be read. With these three the search may be charged: without an Idempotency-Key a repeat may pay twice.",
      ),
    retryAfterMs: milliseconds("When to retry"),
  }),
  engine_timeout: errorSchema("engine_timeout", "The deadline of the search.", {
    timeoutMs: milliseconds("The deadline that has passed"),
  }),
} satisfies Record<ErrorCode, z.ZodType>;

const body = <ErrorSchema extends z.ZodType>(error: ErrorSchema) =>
  z.strictObject({ requestId, error }).describe("The error.");

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
