import { createMCPClient } from "@ai-sdk/mcp";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { codeLoading } from "../harness/processes/code-loading.ts";

/**
 * `node test/agents/main.ts AGENT URL TOKEN KEYWORD…` sends one agent to an MCP endpoint. The agent lists the tools, searches for
 * each keyword and reads its credit. Its report is printed as JSON; all else that is printed comes from the client.
 */

const [agent = "", url = "", token = "", ...keywords] = process.argv.slice(2);
const headers = { authorization: `Bearer ${token}` };

/** Calls the tools. The report has the names of all tools, and what the client made of each result. */
async function report(tools: string[], call: (name: string, input: Record<string, unknown>) => unknown) {
  const answers = [];
  for (const keyword of keywords) answers.push(await call("serp_search", { keyword }));
  answers.push(await call("usage_get", {}));
  return { tools, answers };
}

async function runSdk(transport: Transport) {
  const client = new Client({ name: "agent", version: "1" });
  await client.connect(transport);
  const { tools } = await client.listTools();
  const names = tools.map(({ name }) => name);
  const done = await report(names, (name, input) => client.callTool({ name, arguments: input }));
  await client.close();
  return done;
}

const agents: Record<string, () => Promise<unknown>> = {
  /** The official SDK in its first major version, which most agents use. */
  sdk: () => runSdk(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } })),
  /** `mcp-remote`, as Claude Desktop starts it. Its log goes to stderr. */
  "mcp-remote": () => {
    const program = "node_modules/mcp-remote/dist/proxy.js";
    const args = [program, url, "--transport", "http-only", "--header", "Authorization:${AUTHORIZATION}"];
    const env = { ...codeLoading, AUTHORIZATION: headers.authorization };
    return runSdk(new StdioClientTransport({ command: process.execPath, args, env, stderr: "inherit" }));
  },
  /** The client of the AI SDK, which hands the tools to a model. */
  "ai-sdk": async () => {
    const client = await createMCPClient({ transport: { type: "http", url, headers } });
    const tools = await client.tools();
    const options = { toolCallId: "1", messages: [], context: {} };
    const done = await report(Object.keys(tools), (name, input) => tools[name]?.execute(input, options));
    await client.close();
    return done;
  },
  /** LangChain's adapters, which make a LangChain tool of each tool. They take longer to load than the other agents to run. */
  langchain: async () => {
    const { MultiServerMCPClient } = await import("@langchain/mcp-adapters");
    const client = new MultiServerMCPClient({ mcpServers: { serpmill: { transport: "http", url, headers } } });
    const tools = await client.getTools();
    const names = tools.map(({ name }) => name);
    const done = await report(names, (name, input) => tools.find((tool) => tool.name === name)?.invoke(input));
    await client.close();
    return done;
  },
};

const run = agents[agent];
if (!run) throw new Error(`expected one of ${Object.keys(agents).join(", ")}`);
process.stdout.write(`${JSON.stringify(await run())}\n`);
