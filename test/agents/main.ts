import { aiSdk } from "./ai-sdk.ts";
import type { Agent } from "./agent.ts";
import { langchain } from "./langchain.ts";
import { mcpRemote } from "./mcp-remote.ts";
import { sdk } from "./sdk.ts";

/**
 * `node test/agents/main.ts AGENT URL TOKEN KEYWORD…` sends one agent to an MCP endpoint, and prints its report as JSON. All else
 * that is printed comes from the client.
 */
const agents: Record<string, Agent> = { sdk, "ai-sdk": aiSdk, langchain, "mcp-remote": mcpRemote };

const [name = "", url = "", token = "", ...keywords] = process.argv.slice(2);
const agent = agents[name];
if (!agent) throw new Error(`expected one of ${Object.keys(agents).join(", ")}`);
process.stdout.write(`${JSON.stringify(await agent({ url, token, keywords }))}\n`);
