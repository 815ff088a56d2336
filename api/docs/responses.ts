import { chargingRule } from "../charging-rule.ts";
import type { ErrorStatus } from "../error-schemas.ts";
import { errors } from "../../shared/errors.ts";
import { idForm } from "../../shared/ids.ts";
import { helpLinkOf } from "../http/send-error.ts";
import { codesOf, errorStatuses, type Json, refTo } from "./components.ts";
import { answerExamples, errorExamples, type Examples, usageExamples } from "./examples.ts";

interface Header {
  description: string;
  schema: Json;
  example: unknown;
  /** Whether a response that lists the header always has it. */
  required: boolean;
}

const headers = {
  "X-Request-Id": {
    description: "The id of the request. A replay has the id of the first request.",
    schema: { type: "string", pattern: idForm("req").source, minLength: 30, maxLength: 30 },
    example: "req_01m7xxzmpjesk91yh1thm39tg3",
    required: true,
  },
  "Cache-Control": {
    description: "Responses must not be stored.",
    schema: { type: "string", const: "no-store" },
    example: "no-store",
    required: true,
  },
  Link: {
    description: "The section of the reference about this error, relative to the address of the request.",
    schema: { type: "string", pattern: '^</docs#description/[\\w-]+>; rel="help"$', maxLength: 128 },
    example: helpLinkOf("rate_limited"),
    required: true,
  },
  "RateLimit-Policy": {
    description: "The organization's window: `q` requests in `w` seconds. Missing if the window could not be read.",
    schema: { type: "string", pattern: '^"default";q=\\d+;w=\\d+$', maxLength: 64 },
    example: '"default";q=60;w=60',
    required: false,
  },
  RateLimit: {
    description:
      "The state of the window: `r` requests left, `t` seconds until it resets. Missing if it could not be read.",
    schema: { type: "string", pattern: '^"default";r=\\d+;t=\\d+$', maxLength: 64 },
    example: '"default";r=59;t=42',
    required: false,
  },
  "Idempotency-Replayed": {
    description:
      "Present if this is the answer of an earlier request with the same Idempotency-Key. Nothing was charged.",
    schema: { type: "string", const: "true" },
    example: "true",
    required: false,
  },
  "Retry-After": {
    description: "Seconds until a retry makes sense, rounded up.",
    schema: { type: "integer", format: "int32", minimum: 1, maximum: 2 ** 31 - 1 },
    example: 42,
    required: true,
  },
  "WWW-Authenticate": {
    description:
      'How to authenticate; with `error="invalid_token"` if a token was sent, and with `error="insufficient_scope"` if it is ' +
      "valid, but lacks the scope that is named.",
    schema: {
      type: "string",
      enum: [
        'Bearer realm="serpmill"',
        'Bearer realm="serpmill", error="invalid_token", error_description="The token is unknown, expired or revoked"',
        'Bearer realm="serpmill", error="insufficient_scope", scope="search"',
        'Bearer realm="serpmill", error="insufficient_scope", scope="usage"',
      ],
    },
    example: 'Bearer realm="serpmill"',
    required: true,
  },
} satisfies Record<string, Header>;

type HeaderName = keyof typeof headers;

const always: HeaderName[] = ["X-Request-Id", "Cache-Control"];
const rateLimit: HeaderName[] = ["RateLimit-Policy", "RateLimit"];

const errorHeaders: Partial<Record<ErrorStatus, HeaderName[]>> = {
  401: ["WWW-Authenticate"],
  429: ["Retry-After", ...rateLimit],
  503: ["Retry-After"],
};

/** All responses by name: `Search`, `Usage`, and `Error` with the status. */
export function responses(): Json {
  return {
    Search: {
      description: `The results. ${chargingRule}`,
      headers: named([...always, ...rateLimit, "Idempotency-Replayed"]),
      content: jsonContent(["SearchAnswer", "CompactSearchAnswer"], answerExamples),
    },
    Usage: {
      description: "The available credit. Free.",
      headers: named([...always, ...rateLimit]),
      content: jsonContent("Usage", usageExamples),
    },
    ...Object.fromEntries(errorStatuses.map((status) => [`Error${status}`, errorResponse(status)])),
  };
}

function errorResponse(status: ErrorStatus): Json {
  const codes = codesOf(status).map((code) => {
    const { message, retry } = errors[code];
    return `\`${code}\`: ${message} ${retry ? "A retry can succeed." : "A retry of the same request fails again."}`;
  });
  return {
    description: codes.join("\n\n"),
    headers: named([...always, "Link", ...(errorHeaders[status] ?? [])]),
    content: jsonContent(`Error${status}`, errorExamples[status]),
  };
}

/** A JSON body with its schema, or one of several schemas, and examples. */
export function jsonContent(names: string | readonly string[], examples: Examples): Json {
  const schema =
    typeof names === "string" ? refTo("schemas", names) : { anyOf: names.map((name) => refTo("schemas", name)) };
  return { "application/json": { schema, examples } };
}

export const headerComponents: Json = headers;

const named = (names: readonly HeaderName[]) => Object.fromEntries(names.map((name) => [name, refTo("headers", name)]));
