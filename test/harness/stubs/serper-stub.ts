import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { listen } from "./listen.ts";

const hugeBytes = 11 * 1024 * 1024;

export type SeenRequest = { method: string; path: string; key: string | undefined; body: Record<string, unknown> };
/** The stub's reaction to one request. */
export type Reply = (request: SeenRequest, response: ServerResponse) => void;

export type SerperStub = {
  url: string;
  /** Every request that arrived, in order. */
  requests: SeenRequest[];
  /** Reactions to the next requests, one each; then `otherwise` applies again. */
  next: Reply[];
  /** By default ten organic results on every page, without a last page. */
  otherwise: Reply;
  /** Settings with which a worker sends its searches here. */
  settings: { SERP_PROVIDERS: string; SERPER_API_KEY: string; SERPER_BASE_URL: string };
  /** Holds all replies until the returned function is called. `then` is the reply from then on, by default ten results. */
  hold: (then?: Reply) => () => void;
  close: () => Promise<void>;
};

/**
 * A real server on a free loopback port that replies in Serper's format, or fails as the test chooses.
 * @param end gets what closes it, as `afterAll` does.
 */
export async function startSerperStub(end?: (close: () => Promise<void>) => void): Promise<SerperStub> {
  const listening = await listen((request, response) => void answer(stub, request, response));
  const settings = { SERP_PROVIDERS: "serper", SERPER_API_KEY: "secret", SERPER_BASE_URL: listening.url };
  const hold = (then = tenOrganic) => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    stub.otherwise = (request, response) => void released.then(() => then(request, response));
    return release;
  };
  const stub: SerperStub = { ...listening, requests: [], next: [], otherwise: tenOrganic, settings, hold };
  end?.(stub.close);
  return stub;
}

/** Ten organic results that are on no other page. */
export const tenOrganic: Reply = (request, response) => {
  const { body } = request;
  const page = Number(body["page"]);
  const organic = Array.from({ length: 10 }, (_, row) => ({
    title: `Pump ${page}.${row + 1}`,
    link: `https://pumps.example/${page}/${row + 1}`,
    snippet: "A pump.",
    position: row + 1,
  }));
  reply(200, { searchParameters: body, organic, credits: 1 })(request, response);
};

/** The same reply after a delay. */
export const delayed =
  (ms: number, then: Reply = tenOrganic): Reply =>
  (request, response) =>
    void setTimeout(then, ms, request, response);

/** An answer as JSON. Serper's refusals are `{message, statusCode}`. */
export function reply(status: number, json: unknown): Reply {
  return (_, response) => {
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(json));
  };
}

export const refusal = (statusCode: number, message: string): Reply => reply(statusCode, { message, statusCode });

/** Any reply, as from a proxy or a captive portal. */
export function raw(status: number, body: string, headers: Record<string, string> = {}): Reply {
  return (_, response) => {
    response.writeHead(status, headers).end(body);
  };
}

/** Takes the request and never replies. */
export const hang: Reply = () => {};

/** Starts its answer and never ends it. */
export const stall: Reply = (_, response) => {
  response.writeHead(200, { "content-type": "application/json" }).write('{"organic":[');
};

/** Closes the connection without an answer. */
export const disconnect: Reply = (_, response) => {
  response.destroy();
};

/** Closes the connection in the middle of its answer. */
export const breakOff: Reply = (_, response) => {
  response.writeHead(200, { "content-length": "1000" }).write('{"organic":[', () => response.destroy());
};

/** A valid answer that is larger than any page. */
export const huge: Reply = (_, response) => {
  response
    .writeHead(200, { "content-type": "application/json" })
    .end(`{"organic":[],"pad":"${"x".repeat(hugeBytes)}"}`);
};

async function answer(stub: SerperStub, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body: unknown = JSON.parse(await text(request));
  const key = request.headers["x-api-key"];
  const seen: SeenRequest = {
    method: request.method ?? "",
    path: request.url ?? "",
    key: typeof key === "string" ? key : undefined,
    body: { ...(typeof body === "object" ? body : {}) },
  };
  stub.requests.push(seen);
  (stub.next.shift() ?? stub.otherwise)(seen, response);
}
