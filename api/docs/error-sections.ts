import { z } from "zod";
import { helpHeadingOf } from "../http/send-error.ts";
import { errorDefinitions } from "../error-schemas.ts";
import { type ErrorCode, errors } from "../../shared/errors.ts";

/** What a program or its developer does after each error. */
export const remedies: Record<ErrorCode, string> = {
  bad_request:
    "Change the request. `issues` has one entry for each invalid field; without it, `reason` says what is wrong.",
  query_rejected: "Change the field in `field`. For a location, send one of `candidates`.",
  unauthenticated:
    "Send a valid token as `Authorization: Bearer …`. With `reason` `scope`, use a token with the scope in `scope`.",
  plan_required:
    "Ask for a larger plan, reduce `depth` to `maxDepth`, or contact the operator, as `action` and `reason` say.",
  out_of_credits:
    "Top up at `topupUrl`. If a spending limit was reached, it renews at `renewsAt`, or its payer raises it. A part of `heldMils` may be released soon.",
  not_found: "Check the path: another case or a trailing slash is another path.",
  method_not_allowed: "Use one of these.",
  rate_limited:
    "Wait as long as `Retry-After` says, then repeat the request with the same Idempotency-Key. Nothing was charged. With `reason` `unread`, read the answers to earlier requests first.",
  internal_error: "Repeat the request with the same Idempotency-Key. If it goes on, give the operator the request id.",
  not_implemented: "Send an engine that `supported` lists.",
  engine_error:
    "With `reason` `provider_unavailable`, repeat the request after a pause; with `unreadable_answer`, once. With `provider_refused` a repeat fails again until the operator acts.",
  unavailable: "Wait as long as `Retry-After` says, then repeat the request with the same Idempotency-Key.",
  engine_timeout:
    "Repeat the request with the same Idempotency-Key: if the search was charged, the repeat returns its answer and charges nothing.",
};

const detailsOf = z.object({
  properties: z.object({
    details: z.object({ properties: z.record(z.string(), z.object({ description: z.string() })) }),
  }),
});

/** One section for each error code, for the description of the API. The header `Link` of an error leads there. */
export function errorSections(): string {
  const codes = Object.keys(errors) as ErrorCode[]; // Object.keys returns strings.
  return codes.map(section).join("\n\n");
}

function section(code: ErrorCode): string {
  const { details } = detailsOf.parse(z.toJSONSchema(errorDefinitions[code])).properties;
  const fields = Object.entries(details.properties).map(([name, { description }]) => `- \`${name}\`: ${description}`);
  return [`### ${helpHeadingOf(code)}`, `\`${code}\`: ${errors[code].message} ${remedies[code]}`, fields.join("\n")]
    .filter((part) => part !== "")
    .join("\n\n");
}
