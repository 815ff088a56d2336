/** What a token may do: `POST /v1/serp/search`, `GET /v1/usage` and their MCP tools, and the billing page. */
export const scopes = ["search", "usage", "billing"] as const;
export type Scope = (typeof scopes)[number];
