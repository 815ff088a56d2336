import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import type { AgentTask, Report } from "./agent.ts";
import { callOver } from "./sdk.ts";

const program = "node_modules/mcp-remote/dist/proxy.js";

/** `mcp-remote`, as Claude Desktop starts it. Its log goes to stderr. */
export function mcpRemote(task: AgentTask): Promise<Report> {
  const args = [program, task.url, "--transport", "http-only", "--header", "Authorization:${AUTHORIZATION}"];
  const env = { AUTHORIZATION: `Bearer ${task.token}` };
  return callOver(new StdioClientTransport({ command: process.execPath, args, env, stderr: "inherit" }), task);
}
