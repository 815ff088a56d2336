import { SearxngSearch } from "@langchain/community/tools/searxng_search";
import { TavilySearch } from "@langchain/tavily";
import { Firecrawl } from "@mendable/firecrawl-js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import Perplexity from "@perplexity-ai/perplexity_ai";
import { tavily } from "@tavily/core";
import { codeLoading } from "../../harness/processes/code-loading.ts";

/** Clients of doors that others wrote: from npm, changed in nothing but the address, or by the request in their source. */

/** What a client hands to its program, whatever the client calls it. */
interface Found {
  title: string;
  url: string;
  text: string;
}

/** Searches at an API's address, with the token that the client sends. Rejects with what the client shows its user. */
type Search = (sent: { api: string; q: string; token: string }) => Promise<Found[]>;

export interface DoorClient {
  client: string;
  /**
   * What of an error it shows: our message, or our code in the reason phrase, or only the status. Absent: another client of
   * the door shows the same.
   */
  shows?: "message" | "code" | "status";
  search: Search;
  /** Whether its token stands in the address. */
  inAddress?: boolean;
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

/** What a client's source makes of another status than 200. */
type Shown = (response: Response, text: string) => string;

/** Sends what is in a client's source. */
async function send(url: string, init: RequestInit, shown: Shown = (_, text) => text) {
  const response = await fetch(url, init);
  const text = await response.text();
  if (response.status !== 200) throw new Error(shown(response, text));
  return JSON.parse(text);
}

const json = (headers: Record<string, string>, body: unknown): RequestInit => ({
  method: "POST",
  headers: { "content-type": "application/json", ...headers },
  body: JSON.stringify(body),
});

/** What two common libraries make of an error: Axios, and Python's requests. */
const ofAxios = ({ status }: Response) => `Request failed with status code ${status}`;
const ofRequests = ({ status, statusText, url }: Response) => `${status} Error: ${statusText} for url: ${url}`;

type Row = Record<string, string>;

/** A client that sends no token, but asks SearXNG at an address by GET. */
const asksSearxng = (
  client: string,
  { path = "/search", headers = {}, fields = {} }: { path?: string; headers?: Row; fields?: Row },
  error: Pick<DoorClient, "shows"> & { shown?: Shown } = {},
): DoorClient => ({
  client,
  ...(error.shows && { shows: error.shows }),
  inAddress: true,
  search: async ({ api, q, token }) => {
    const query = new URLSearchParams({ q, format: "json", ...fields }).toString();
    return (await send(`${api}/searxng/k/${token}${path}?${query}`, { headers }, error.shown)).results.map(ofSearxng);
  },
});

const ofTavily = ({ title = "", url = "", content = "" }: Row): Found => ({ title, url, text: content });
const ofSearxng = ofTavily;
const ofSerper = ({ title = "", link = "", snippet = "" }: Row): Found => ({ title, url: link, text: snippet });

async function callLangchain(tool: SearxngSearch, q: string): Promise<Found[]> {
  const text = await tool.invoke(q);
  if (text === "No good results found.") return [];
  const rows: { title: string; link: string; snippet: string }[] = JSON.parse(`[${text}]`);
  return rows.map(({ title, link, snippet }) => ({ title, url: link, text: snippet }));
}

/** Calls the one search tool of an MCP server that speaks SearXNG. @returns the text that a model reads. */
async function callMcpSearxng(address: string, q: string): Promise<string> {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: ["node_modules/mcp-searxng/dist/cli.js"],
    env: { ...codeLoading, SEARXNG_URL: address },
    stderr: "ignore",
  });
  const agent = new Client({ name: "agent", version: "1" });
  await agent.connect(transport);
  try {
    const { content } = await agent.callTool({ name: "searxng_web_search", arguments: { query: q } });
    return (content as { text: string }[]).map(({ text }) => text).join("\n"); // As its other texts, by MCP.
  } finally {
    await agent.close();
  }
}

export const doorClients: DoorClient[] = [
  {
    client: "@langchain/community, for SearXNG",
    shows: "code",
    search: ({ api, q, token }) =>
      callLangchain(new SearxngSearch({ apiBase: `${api}/searxng`, headers: bearer(token) }), q),
  },
  {
    client: "n8n, with @langchain/community (nodes/tools/ToolSearXng/ToolSearXng.node.ts at 4193d18)",
    shows: "code",
    inAddress: true,
    search: ({ api, q, token }) => {
      const headers = { accept: "application/json" };
      const params = { numResults: 10, pageNumber: 1, language: "en", safesearch: 0 } as const;
      return callLangchain(new SearxngSearch({ apiBase: `${api}/searxng/k/${token}`, headers, params }), q);
    },
  },
  {
    client: "mcp-searxng",
    shows: "status",
    inAddress: true,
    search: async ({ api, q, token }) => {
      const text = await callMcpSearxng(`${api}/searxng/k/${token}`, q);
      const rows = [...text.matchAll(/^Title: (.*)\nDescription: (.*)\nURL: (.*)$/gm)];
      if (rows.length === 0 && !text.includes("No results found")) throw new Error(text);
      return rows.map(([, title = "", description = "", url = ""]) => ({ title, url, text: description }));
    },
  },
  {
    client: "LibreChat, for SearXNG (@librechat/agents 3.9.2, src/tools/search/search.ts)",
    search: async ({ api, q, token }) => {
      const fields = { q, format: "json", pageno: "1", categories: "general", language: "all", safesearch: "1" };
      const query = new URLSearchParams({ ...fields, engines: "google,bing,duckduckgo" }).toString();
      const headers = { "x-api-key": token, "content-type": "application/json" };
      return (await send(`${api}/searxng/search?${query}`, { headers })).results.map(ofSearxng);
    },
  },
  asksSearxng("Open WebUI, for SearXNG (backend/open_webui/retrieval/web/searxng.py at 0389737)", {
    fields: { pageno: "1", safesearch: "1", language: "en-US", time_range: "", theme: "simple", image_proxy: "0" },
    headers: { accept: "text/html", "accept-language": "en-US,en;q=0.5" },
  }),
  asksSearxng("AnythingLLM, for SearXNG at the root (server/utils/agents/aibitat/plugins/web-browsing.js at 0a0354a)", {
    path: "",
    headers: { "content-type": "application/json" },
  }),
  asksSearxng(
    "Firecrawl, for SearXNG (apps/api/src/search/v2/searxng.ts at 4065b8b)",
    {
      fields: { language: "en", engines: "", categories: "general", pageno: "1" },
      headers: { "content-type": "application/json" },
    },
    { shows: "status", shown: ({ status }) => `searxng returned ${status}` },
  ),
  asksSearxng(
    "Morphic, for SearXNG (lib/tools/search/providers/searxng.ts at 935a6f1)",
    { fields: { categories: "general,images", time_range: "year", safesearch: "1", engines: "google,bing" } },
    {
      shows: "message",
      shown: ({ status, statusText }, text) => `SearXNG API error: ${status} ${statusText} - ${text}`,
    },
  ),
  asksSearxng("Dify, at the root (tools/searxng/tools/searxng_search.py at 0e82f35)", {
    path: "",
    fields: { time_range: "day", categories: "general" },
  }),
  {
    client: "Onyx, for SearXNG (tools/tool_implementations/web_search/clients/searxng_client.py at 04c1c1e)",
    inAddress: true,
    search: async ({ api, q, token }) => {
      const init = { method: "POST", body: new URLSearchParams({ q, format: "json" }) };
      return (await send(`${api}/searxng/k/${token}/search`, init)).results.map(ofSearxng);
    },
  },
  {
    client: "LiteLLM, for SearXNG (litellm/llms/searxng/search/transformation.py at 0cc07ba)",
    search: async ({ api, q, token }) => {
      const query = new URLSearchParams({ q, format: "json", language: "de" }).toString();
      const headers = { ...bearer(token), "content-type": "application/json" };
      return (await send(`${api}/searxng/search?${query}`, { headers })).results.map(ofSearxng);
    },
  },
  {
    client: "@tavily/core",
    shows: "message",
    search: async ({ api, q, token }) => {
      const client = tavily({ apiKey: token, apiBaseURL: `${api}/tavily` });
      return (await client.search(q, {})).results.map(({ title, url, content }) => ({ title, url, text: content }));
    },
  },
  {
    client: "@langchain/tavily",
    shows: "message",
    search: async ({ api, q, token }) => {
      const tool = new TavilySearch({ tavilyApiKey: token, apiBaseUrl: `${api}/tavily` });
      const message = await tool.invoke({ name: tool.name, args: { query: q }, id: "1", type: "tool_call" });
      const answer: { error?: string; results: Row[] } = JSON.parse(String(message.content));
      // The tool hands its own errors to the model as an answer. It takes an empty list for one.
      if (answer.error?.includes("No search results found")) return [];
      if (answer.error !== undefined) throw new Error(answer.error);
      return answer.results.map(ofTavily);
    },
  },
  {
    client: "LibreChat, for Tavily (@librechat/agents 3.9.2, src/tools/search/tavily-search.ts)",
    shows: "status",
    search: async ({ api, q, token }) => {
      const body = { query: q, search_depth: "basic", topic: "general", max_results: 8, country: "united states" };
      return (await send(`${api}/tavily/search`, json(bearer(token), body), ofAxios)).results.map(ofTavily);
    },
  },
  {
    client: "LiteLLM, for Tavily (litellm/llms/tavily/search/transformation.py at 030e757)",
    search: async ({ api, q, token }) => {
      const body = { query: q, max_results: 5, country: "us", topic: "news", time_range: "week" };
      return (await send(`${api}/tavily/search`, json(bearer(token), body))).results.map(ofTavily);
    },
  },
  {
    client: "Hermes Agent, for Tavily (plugins/web/tavily/provider.py at 00697a7)",
    shows: "code",
    inAddress: true,
    search: async ({ api, q, token }) => {
      const wishes = { max_results: 5, include_raw_content: false, include_images: false };
      const body = { query: q, ...wishes, api_key: "any" };
      return (await send(`${api}/tavily/k/${token}/search`, json({}, body), ofRequests)).results.map(ofTavily);
    },
  },
  {
    client: "@perplexity-ai/perplexity_ai",
    shows: "message",
    search: async ({ api, q, token }) => {
      const client = new Perplexity({ apiKey: token, baseURL: `${api}/perplexity`, maxRetries: 0 });
      const { results } = await client.search.create({ query: q, max_results: 5 });
      return results.map(({ title, url, snippet }) => ({ title, url, text: snippet }));
    },
  },
  {
    client: "@mendable/firecrawl-js, version 2 of its API",
    shows: "message",
    search: async ({ api, q, token }) => {
      const client = new Firecrawl({ apiKey: token, apiUrl: `${api}/firecrawl`, maxRetries: 1 });
      const { web = [] } = await client.search(q, { limit: 3 });
      return web.map((row) => {
        const { title = "", url = "", description = "" } = row as Row; // It may be a scraped page, with a type of its own.
        return { title, url, text: description };
      });
    },
  },
  {
    client: "@mendable/firecrawl-js, version 1 of its API",
    shows: "message",
    search: async ({ api, q, token }) => {
      const { v1 } = new Firecrawl({ apiKey: token, apiUrl: `${api}/firecrawl` });
      const { data } = await v1.search(q, {});
      return data.map(({ title = "", url = "", description = "" }) => ({ title, url, text: description }));
    },
  },
  {
    client: "Open WebUI's external search (backend/open_webui/retrieval/web/external.py at 008fec8)",
    shows: "code",
    search: async ({ api, q, token }) => {
      const rows: Row[] = await send(`${api}/openwebui`, json(bearer(token), { query: q, count: 3 }), ofRequests);
      return rows.map(ofSerper);
    },
  },
  {
    client: "LiteLLM, for Serper (litellm/llms/serper/search/transformation.py at 165fd0f)",
    search: async ({ api, q, token }) => {
      const body = { q, num: 10, gl: "us", autocorrect: true, tbs: "qdr:w" };
      return (await send(`${api}/serper/search`, json({ "x-api-key": token }, body))).organic.map(ofSerper);
    },
  },
  {
    client: "CrewAI, for Serper (crewai_tools/tools/serper_dev_tool/serper_dev_tool.py at 58cd0c8)",
    shows: "code",
    search: async ({ api, q, token }) => {
      const { organic } = await send(`${api}/serper/search`, json({ "x-api-key": token }, { q, num: 10 }), ofRequests);
      return organic.map(ofSerper);
    },
  },
];
