import { randomBytes } from "node:crypto";
import { currentMessage } from "../../harness/clients/agent.ts";
import type { Load, RequestKind } from "./load.ts";

const equalKeyword = "best coffee beans";
const placeholder = "KEYWORD";

/** One request as it is sent. `headers` alternates names and values, which spares the client work. */
export interface SentRequest {
  method: "GET" | "POST";
  path: string;
  headers: string[];
  body: string | null;
}

/** A text that every right answer contains: of a charged search, a balance, or an error. */
export const markOf = (request: RequestKind): string =>
  request === "refused" ? '"error"' : request === "usage" ? '"creditBalanceMils"' : '"creditsCharged"';

/**
 * The requests of a load, one after the other. Tokens take turns. Keywords and keys are never used again, in no later load
 * either.
 */
export function requestsOf({ request, tokens }: Pick<Load, "request" | "tokens">): () => SentRequest {
  const { method, path, headers, body } = shapeOf(request);
  const flat = tokens.map((token) => Object.entries({ ...headers, authorization: `Bearer ${token}` }).flat());
  const run = randomBytes(5).toString("hex");
  let sent = 0;
  return () => {
    sent += 1;
    const keyword = request === "equal" ? equalKeyword : `best coffee ${run} ${sent}`;
    const own = flat[sent % flat.length] ?? [];
    return {
      method,
      path,
      headers: request === "keyed" ? [...own, "idempotency-key", `${run}-${sent}`] : own,
      body: body?.replace(placeholder, keyword) ?? null,
    };
  };
}

interface Shape {
  method: "GET" | "POST";
  path: string;
  headers: Record<string, string>;
  body: string | null;
}

const json = { "content-type": "application/json" };

function shapeOf(request: RequestKind): Shape {
  switch (request) {
    case "usage":
      return { method: "GET", path: "/v1/usage", headers: {}, body: null };
    case "mcp":
    case "mcp-2025-11-25":
      return { method: "POST", path: "/mcp", ...callOf(request) };
    case "depth-100":
      return searchWith({ depth: 100 });
    default:
      return searchWith({});
  }
}

const searchWith = (fields: { depth?: number }): Shape => ({
  method: "POST",
  path: "/v1/serp/search",
  headers: json,
  body: JSON.stringify({ keyword: placeholder, ...fields }),
});

function callOf(revision: "mcp" | "mcp-2025-11-25"): Pick<Shape, "headers" | "body"> {
  const params = { name: "serp.search", arguments: { keyword: placeholder } };
  const current = currentMessage("tools/call", params);
  if (revision === "mcp") return current;
  const { accept } = current.headers;
  return {
    headers: { ...json, accept },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
  };
}
