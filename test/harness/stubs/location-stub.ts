import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { dataForSeoList, serpapiList } from "../fixtures/location-lists.ts";
import { listen } from "./listen.ts";

type Answer = { status: number; body: unknown };

export type LocationStub = {
  /** Settings with which commands and workers ask this server. */
  settings: Record<string, string>;
  /** The answers to requests for a list: whole lists, unless a test sets others. A string is sent as it is. */
  lists: { dataforseo: Answer; serpapi: Answer };
  /** The locations that searches sent, in order: `dataforseo Munich,Bavaria,Germany`. */
  searched: string[];
  close: () => Promise<void>;
};

/** A server in the formats of both providers that publish a list of locations, for their lists and for searches. */
export async function startLocationStub(page: { dataforseo: unknown; serpapi: unknown }): Promise<LocationStub> {
  const searched: string[] = [];
  const lists: LocationStub["lists"] = {
    dataforseo: { status: 200, body: dataForSeoList() },
    serpapi: { status: 200, body: serpapiList() },
  };
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { pathname, searchParams } = new URL(request.url ?? "", "http://stub");
    const provider = pathname.startsWith("/dataforseo/") ? "dataforseo" : "serpapi";
    const isList = pathname.includes("/locations");
    if (!isList) {
      const [task] = request.method === "POST" ? JSON.parse(await text(request)) : [{}];
      searched.push(`${provider} ${task.location_name ?? task.location_code ?? searchParams.get("location")}`);
    }
    const { status, body } = isList ? lists[provider] : { status: 200, body: page[provider] };
    response.writeHead(status, { "content-type": "application/json" });
    response.end(typeof body === "string" ? body : JSON.stringify(body));
  };
  const { url, close } = await listen((request, response) => void answer(request, response));
  const settings = {
    DATAFORSEO_LOGIN: "login",
    DATAFORSEO_PASSWORD: "secret",
    DATAFORSEO_BASE_URL: `${url}/dataforseo`,
    SERPAPI_API_KEY: "a-secret-of-serpapi-0123456789",
    SERPAPI_BASE_URL: `${url}/serpapi`,
  };
  return { settings, lists, searched, close };
}
