import type { Request, Response } from "express";
import { chargingRule } from "../charging-rule.ts";
import type { Config } from "../../shared/config.ts";
import { requestScopeOf } from "../http/request-scope.ts";

/** GET /llms.txt: what a model needs to write code for this API, or to find the page that has it (llmstxt.org). */
export function handleLlmsText({ PUBLIC_URL: publicUrl }: Pick<Config, "PUBLIC_URL">) {
  return (_: Request, response: Response) => {
    response.set("Content-Type", "text/plain; charset=utf-8");
    // Without PUBLIC_URL the text has the Host that this caller sent, so no cache may give it to another one.
    if (publicUrl !== undefined) response.set("Cache-Control", "public, max-age=300");
    response.end(llmsText(requestScopeOf(response).origin));
  };
}

const llmsText = (address: string) => `# Serpmill

> A metered API for ranked Google results as JSON. ${chargingRule}

- Send \`POST ${address}/v1/serp/search\` with \`{"keyword": "best coffee beans"}\` and the header \`Authorization: Bearer $SERPMILL_TOKEN\`.
- Send an \`Idempotency-Key\` with each search, and the same key with each repeat of it: a repeat never pays twice.
- Wait up to 35 seconds for an answer. Repeat after a lost connection, and after 429, 500, 502 (not with the reason \`provider_refused\`), 503 and 504; wait as \`Retry-After\` says.
- Switch on \`error.code\`. The header \`Link\` of an error, with \`rel="help"\`, leads to what it means.
- The clients for TypeScript and Python, in the folder \`clients\` of the project, do all of this. Both read \`SERPMILL_TOKEN\` and \`SERPMILL_URL\` (${address}).

## Documentation

- [OpenAPI 3.1](${address}/openapi.json): every field, error and header, with examples
- [Reference](${address}/docs): the same to read, with code and a section for each error
- [Retry safely](${address}/docs#description/retry-safely): what to repeat, and how long to wait

## Agents

- [Model Context Protocol](${address}/mcp?names=plain): the tools \`serp_search\` and \`usage_get\`, with the same token

## Optional

- [Playground](${address}/playground): a search from a form, for people
- [Account](${address}/billing): credit, charges, tokens and limits, for people
`;
