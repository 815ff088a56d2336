import { Firecrawl } from "@mendable/firecrawl-js";
import { TavilySearch } from "@langchain/tavily";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import Perplexity from "@perplexity-ai/perplexity_ai";
import { tavily } from "@tavily/core";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { newToken } from "../../../api/tokens/tokens.ts";
import { type Answer, type Organization, Service } from "../../harness/processes/service.ts";

/** The doors, by clients that others wrote: from npm, changed in nothing but the address, or by the request in their source. */

const patienceMs = 1_000;
const names = ["searxng", "tavily", "openwebui", "perplexity", "firecrawl", "serper"];

let service: Service;
let payer: Organization;
let addressToken: string;
beforeAll(async () => {
  vi.spyOn(console, "log").mockImplementation(() => undefined); // LangChain prints each answer that is an error.
  const COMPAT_PATIENCE_MS = names.map((name) => `${name}=${patienceMs}`).join(",");
  service = await Service.start({ environment: { COMPAT_DOORS: names.join(","), COMPAT_PATIENCE_MS } });
  payer = await service.organization({ creditMils: 10_000 });
  addressToken = (await service.organization({ scopes: ["door"], dayMils: 1_000 })).token;
});
afterAll(() => service.stop());

const at = (path: string) => `${service.apis[0]?.url}/${path}`;

/** What a client hands to its program, whatever the client calls it. */
interface Found {
  title: string;
  url: string;
  text: string;
}

/** Searches with a client, which rejects with what it shows its user. */
type Search = (q: string, token: string) => Promise<Found[]>;

/** Sends a JSON body as a client does, and shows what the client shows for another status than 200. */
async function post(path: string, headers: Record<string, string>, body: unknown): Promise<Answer["body"]> {
  const answer = await service.send(`/${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  if (answer.status !== 200) throw new Error(`${answer.status} ${answer.text}`);
  return answer.body;
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

const clients: { client: string; search: Search }[] = [
  {
    client: "@tavily/core",
    search: async (q, token) => {
      const { results, images } = await tavily({ apiKey: token, apiBaseURL: at("tavily") }).search(q, {});
      expect(images).toEqual([]);
      return results.map(({ title, url, content }) => ({ title, url, text: content }));
    },
  },
  {
    client: "@langchain/tavily",
    search: async (q, token) => {
      const tool = new TavilySearch({ tavilyApiKey: token, apiBaseUrl: at("tavily") });
      const message = await tool.invoke({ name: tool.name, args: { query: q }, id: "1", type: "tool_call" });
      const answer = JSON.parse(String(message.content));
      // The tool hands its own errors to the model as an answer. It takes an empty list for one.
      if (String(message.content).includes("No search results found")) return [];
      if (JSON.stringify(answer).includes('"error"')) throw new Error(JSON.stringify(answer));
      const { results } = answer as { results: { title: string; url: string; content: string }[] };
      return results.map(({ title, url, content }) => ({ title, url, text: content }));
    },
  },
  {
    client: "LibreChat, for Tavily (@librechat/agents 3.9.2, src/tools/search/tavily-search.ts)",
    search: async (q, token) => {
      const body = { query: q, search_depth: "basic", topic: "general", max_results: 8, country: "united states" };
      const { results } = await post("tavily/search", bearer(token), body);
      return results.map(({ title, url, content }: Record<string, string>) => ({ title, url, text: content }));
    },
  },
  {
    client: "@perplexity-ai/perplexity_ai",
    search: async (q, token) => {
      const client = new Perplexity({ apiKey: token, baseURL: at("perplexity"), maxRetries: 0 });
      const { results } = await client.search.create({ query: q, max_results: 5 });
      return results.map(({ title, url, snippet }) => ({ title, url, text: snippet }));
    },
  },
  {
    client: "@mendable/firecrawl-js, version 2 of its API",
    search: async (q, token) => {
      const client = new Firecrawl({ apiKey: token, apiUrl: at("firecrawl"), maxRetries: 1 });
      const { web = [] } = await client.search(q, { limit: 3 });
      return web.map((row) => {
        const { title = "", url = "", description = "" } = row as Partial<Record<string, string>>;
        return { title, url, text: description };
      });
    },
  },
  {
    client: "@mendable/firecrawl-js, version 1 of its API",
    search: async (q, token) => {
      const { v1 } = new Firecrawl({ apiKey: token, apiUrl: at("firecrawl") });
      const { data } = await v1.search(q, {});
      return data.map(({ title = "", url = "", description = "" }) => ({ title, url, text: description }));
    },
  },
  {
    client: "Open WebUI's external search (backend/open_webui/retrieval/web/external.py)",
    search: async (q, token) => {
      const results = await post("openwebui", bearer(token), { query: q, count: 3 });
      return results.map(({ title, link, snippet }: Record<string, string>) => ({ title, url: link, text: snippet }));
    },
  },
  {
    client: "CrewAI, for Serper (SerperDevTool with its base_url)",
    search: async (q, token) => {
      const { organic } = await post("serper/search", { "x-api-key": token }, { q, num: 10 });
      return organic.map(({ title, link, snippet }: Record<string, string>) => ({ title, url: link, text: snippet }));
    },
  },
];

describe.each(clients)("$client", ({ search }) => {
  test("gets results, and pays once for a repeat", async () => {
    const { organizationId, token } = await service.organization();
    const found = await search("garden pump", token);
    expect(found.length).toBeGreaterThan(2);
    for (const { title, url, text } of found) {
      expect([title, text]).toEqual([expect.stringMatching(/./), expect.any(String)]);
      expect(url).toMatch(/^https?:/);
    }
    expect(await search("garden pump", token)).toEqual(found);
    await service.rest();
    const charges = (await service.ledgerOf(organizationId)).filter(({ kind }) => kind === "charge");
    expect(charges.map(({ mils }) => mils)).toEqual([-5]);
  });

  test("gets an empty list for a search without results", async () => {
    expect(await search("sandbox:empty", payer.token)).toEqual([]);
  });

  test("shows its user why it was refused, and that its patience ended", async () => {
    await expect(search("tea", newToken())).rejects.toThrow(/Tokens may expire or be revoked/);
    const { token } = await service.organization();
    await expect(search("sandbox:slow=5000", token)).rejects.toThrow(/within 60 s of its start/);
  });
});

/** Calls the one search tool of an MCP server that speaks SearXNG, and returns the text that a model reads. */
async function searchOverMcp(q: string): Promise<string> {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: ["node_modules/mcp-searxng/dist/cli.js"],
    env: { SEARXNG_URL: at(`searxng/k/${addressToken}`) },
    stderr: "ignore",
  });
  const agent = new Client({ name: "agent", version: "1" });
  await agent.connect(transport);
  try {
    const { content } = await agent.callTool({ name: "searxng_web_search", arguments: { query: q } });
    return JSON.stringify(content);
  } finally {
    await agent.close();
  }
}

test("mcp-searxng, which sends no token, searches with one in the address, and shows errors", {
  timeout: 60_000,
}, async () => {
  expect(await searchOverMcp("garden pump")).toMatch(/https?:/);
  expect(await searchOverMcp("sandbox:error")).toContain("Error (502)"); // It shows the status, and a text of its own.
});

const wrong = [
  {
    door: "tavily/search",
    body: { query: "a", include_raw_content: true },
    says: "`include_raw_content`: This door gives no contents of pages.",
  },
  {
    door: "tavily/search",
    body: { query: "a", max_results: 21 },
    says: "`max_results`: Expected a whole number from 1 to 20.",
  },
  { door: "tavily/search", body: { query: "a", country: "nowhere" }, says: "`country`:" },
  { door: "openwebui", body: { query: "" }, says: "`query`:" },
  { door: "perplexity/search", body: { query: ["a", "b"] }, says: "`query`: Expected one query" },
  {
    door: "firecrawl/v2/search",
    body: { query: "a", scrapeOptions: { formats: ["markdown"] } },
    says: "`scrapeOptions`: This door gives no contents of pages.",
  },
  {
    door: "firecrawl/v2/search",
    body: { query: "a", sources: ["news"] },
    says: "`sources.0`: This door searches the web only",
  },
  {
    door: "serper/search",
    body: { q: "a", num: 100, page: 2 },
    says: "`page`: Expected a page that ends at result 100",
  },
  { door: "serper/search", body: [{ q: "a" }], says: "Expected a JSON object as the body." },
];

test.each(wrong)(
  "$door refuses $body in the client's words, before anything is charged",
  async ({ door, body, says }) => {
    const { organizationId, token } = await service.organization();
    await expect(post(door, bearer(token), body)).rejects.toThrow(says);
    await expect(post(door, bearer(token), body)).rejects.toThrow("bad_request");
    expect(await service.holdsOf(organizationId)).toMatchObject({ open: 0 });
  },
);

test("the sites that a client wants become operators of the keyword", async () => {
  const { query } = await post("tavily/search", bearer(payer.token), {
    query: "pump",
    include_domains: ["a.example", "b.example"],
    exclude_domains: ["c.example"],
  });
  expect(query).toBe("pump");
  const keyword = "pump (site:a.example OR site:b.example) -site:c.example";
  // The search log is written after the answer.
  await service.until(async () => {
    const { rowCount } = await service.database.query("select from search_log where keyword = $1", [keyword]);
    return rowCount === 1;
  });
});

test("Tavily's answer is the engine's own, if it was asked for", async () => {
  const ask = (wish: object) => post("tavily/search", bearer(payer.token), { query: "garden pump", ...wish });
  expect((await ask({})).answer).toBeNull();
  expect((await ask({ include_answer: true })).answer).toMatch(/./);
});

test("Serper's pages follow each other, with the elements that its clients read", async () => {
  const page = (number: number) =>
    post("serper/search", { "x-api-key": payer.token }, { q: "long tail", page: number });
  const [first, second] = [await page(1), await page(2)];
  expect(first).toMatchObject({
    searchParameters: { q: "long tail", type: "search" },
    knowledgeGraph: { title: expect.any(String) },
    peopleAlsoAsk: expect.arrayContaining([expect.objectContaining({ question: expect.any(String) })]),
    relatedSearches: expect.arrayContaining([{ query: expect.any(String) }]),
  });
  expect(second.organic[0].link).not.toBe(first.organic[0].link);
  expect(second.organic[0].position).toBe(1);
});

test.each([
  { door: "tavily/search", status: 432, body: { query: "a" } },
  { door: "firecrawl/v2/search", status: 402, body: { query: "a" } },
  { door: "serper/search", status: 400, body: { q: "a" } },
])("$door answers $status without credit, with the code inside", async ({ door, status, body }) => {
  const { token } = await service.organization({ creditMils: 1 });
  await expect(post(door, bearer(token), body)).rejects.toThrow(new RegExp(`^${status} .*out_of_credits`));
});
