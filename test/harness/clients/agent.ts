import { type CallToolResult, Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type { Answer, Service } from "../processes/service.ts";

/** The supported revisions of the protocol: the current one, and the last one with a handshake. */
const revisions = { "2026-07-28": "auto", "2025-11-25": "legacy" } as const;
export type Revision = keyof typeof revisions;
// Object.keys returns strings.
export const revisionNames = Object.keys(revisions) as Revision[];

/** The result of a tool call. `body` is the structured content; `texts` is for models that do not read it. */
export interface ToolAnswer {
  body: Answer["body"];
  texts: string[];
  isError: boolean;
  meta: Record<string, unknown>;
}

/** Options of a call, besides the tool's arguments. */
export type CallOptions = NonNullable<Parameters<Client["callTool"]>[1]> & { meta?: Record<string, unknown> };

/** An agent: the protocol's official client, over HTTP. */
export class Agent {
  readonly client: Client;
  /** Errors that the client reported outside of a call. */
  readonly clientErrors: Error[] = [];

  private constructor(revision: Revision) {
    this.client = new Client({ name: "agent", version: "1" }, { versionNegotiation: { mode: revisions[revision] } });
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the client has no events
    this.client.onerror = (error) => this.clientErrors.push(error);
  }

  static async connect(
    service: Service,
    token: string,
    { revision = "2026-07-28", api = 0, path = "/mcp" }: { revision?: Revision; api?: number; path?: string } = {},
  ): Promise<Agent> {
    const agent = new Agent(revision);
    const url = new URL(path, service.apis[api]?.url);
    const requestInit = { headers: { authorization: `Bearer ${token}` } };
    await agent.client.connect(new StreamableHTTPClientTransport(url, { requestInit }));
    return agent;
  }

  async call(
    name: string,
    given: Record<string, unknown> = {},
    { meta, ...options }: CallOptions = {},
  ): Promise<ToolAnswer> {
    const params = { name, arguments: given, ...(meta && { _meta: meta }) };
    return toolAnswerOf(await this.client.callTool(params, options));
  }

  close(): Promise<void> {
    return this.client.close();
  }
}

function toolAnswerOf({ content, structuredContent, isError, _meta: meta }: CallToolResult): ToolAnswer {
  const texts = content.map((part) => (part.type === "text" ? part.text : part.type));
  return { body: structuredContent, texts, isError: isError ?? false, meta: meta ?? {} };
}

/** The headers and body of a request of the current revision, for tests that send it without the client. */
export function currentMessage(method: string, params: { name?: string; arguments?: object } = {}) {
  const meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": { name: "by hand", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  return {
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": method,
      ...(params.name !== undefined && { "mcp-name": params.name }),
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta: meta } }),
  };
}
