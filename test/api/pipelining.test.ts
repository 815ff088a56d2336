import { once } from "node:events";
import type { RequestListener, ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { createHttpServer, pipelinedMax } from "../../api/http/server.ts";
import { Connection } from "../harness/clients/connection.ts";
import { startAnsweringApi } from "../harness/stubs/answering-api.ts";
import { listenOn } from "../harness/stubs/listen.ts";
import { requestText } from "../harness/clients/raw-http.ts";

/** Callers with many requests on a connection, or many connections. */

const closings: (() => void)[] = [];
afterEach(() => {
  for (const close of closings.splice(0)) close();
});

const search = (headers: Record<string, string> = {}) =>
  requestText("POST /v1/serp/search", { "content-type": "application/json", ...headers }, '{"keyword":"a"}');
const getLarge = "GET /large HTTP/1.1\r\nHost: a\r\n\r\n";

describe("the charge of a search", () => {
  const answer = JSON.stringify({ requestId: "req_1", results: [] });

  async function start(body = answer) {
    const api = await startAnsweringApi({ body, deliveryMs: 200 });
    const caller = await Connection.open(api.url);
    closings.push(() => caller.reset(), api.stop);
    return { api, caller };
  }

  const last = { connection: "close" };
  test.each([
    { title: "searches", bytes: search() + search() + search(last), answers: 3 },
    {
      title: "a search that waits to be told to send its body",
      bytes: search({ expect: "100-continue", ...last }),
      answers: 1,
    },
  ])(
    "stands for $title behind an answer that was long unread, and every answer arrives",
    async ({ bytes, answers }) => {
      const { api, caller } = await start();
      caller.send(getLarge + bytes);
      await sleep(1_000); // Longer than a caller may take for the answer of a search.
      await caller.readBytes(Number.POSITIVE_INFINITY);
      expect(caller.received.toString("latin1").split(answer)).toHaveLength(answers + 1);
      await expect.poll(() => api.decisions).toEqual(Array.from({ length: answers }, () => "confirmed"));
    },
  );

  const long = JSON.stringify({ requestId: "req_1", text: "a".repeat(16 * 1024 * 1024) });

  test("is given back if the caller takes too long, and the caller never gets the whole answer", async () => {
    const { api, caller } = await start(long);
    caller.send(search());
    await expect.poll(() => api.decisions).toEqual(["reversed"]);
    expect([await caller.readBytes(long.length), caller.isClosed]).toEqual([false, true]);
  });

  test("is given back if the connection ends in the middle of the answer", async () => {
    const { api, caller } = await start(long);
    caller.send(search());
    await caller.readBytes(1_000_000);
    caller.reset();
    await expect.poll(() => api.decisions).toEqual(["reversed"]);
  });
});

describe("the requests of a connection", () => {
  const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;

  /** A server that answers when the test does, and what it handles. */
  async function serve() {
    const handled: { path: string | undefined; response: ServerResponse }[] = [];
    const listener: RequestListener = ({ url: path }, response) => void handled.push({ path, response });
    const server = createHttpServer(listener);
    const socket: Socket = connect(await listenOn(server), "127.0.0.1");
    socket.resume().on("error", () => undefined);
    closings.push(() => socket.destroy(), server.close.bind(server));
    return { socket, handled, paths: () => handled.map(({ path }) => path) };
  }

  test("are handled one after the other, in their order", async () => {
    const { socket, handled, paths } = await serve();
    socket.write(["/1", "/2", "/3"].map(get).join(""));
    for (const expected of [["/1"], ["/1", "/2"], ["/1", "/2", "/3"]]) {
      await expect.poll(paths).toEqual(expected);
      handled.at(-1)?.response.end("answer");
    }
  });

  test("may wait for each other up to a bound; beyond it the connection ends", async () => {
    const allowed = await serve();
    allowed.socket.write(get("/1").repeat(1 + pipelinedMax));
    for (let answered = 0; answered <= pipelinedMax; answered += 1) {
      await expect.poll(() => allowed.handled.length).toBe(answered + 1);
      allowed.handled.at(-1)?.response.end("answer");
    }
    const refused = await serve();
    refused.socket.write(get("/1").repeat(2 + pipelinedMax));
    await once(refused.socket, "close");
    expect(refused.paths()).toEqual(["/1"]);
  });

  test.each([
    { title: "resets it", end: (socket: Socket) => void socket.resetAndDestroy() },
    { title: "ends its side", end: (socket: Socket) => void socket.end() },
    {
      title: "asks for a tunnel",
      end: (socket: Socket) => void socket.write("CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n"),
    },
    { title: "sends no HTTP", end: (socket: Socket) => void socket.write("no HTTP\r\n\r\n") },
  ])("that wait do not begin once the caller $title", async ({ end }) => {
    const { socket, handled, paths } = await serve();
    socket.write(get("/1") + get("/2"));
    await expect.poll(paths).toEqual(["/1"]);
    end(socket);
    const first = handled[0]?.response;
    if (!first) throw new Error("the first request was not handled");
    if (!first.closed) await once(first, "close");
    first.end("answer");
    await sleep(50); // A request that began now would do so at once.
    expect(paths()).toEqual(["/1"]);
  });
});

test("idle connections make room for new ones where there are too many", async () => {
  const server = createHttpServer((_request, response) => void response.end());
  server.maxConnections = 2;
  const port = await listenOn(server);
  closings.push(() => server.closeAllConnections(), server.close.bind(server));

  /** @returns a connection that had an answer and is idle now; undefined if the server dropped it. */
  async function connection(): Promise<Socket | undefined> {
    const socket = connect(port, "127.0.0.1").on("error", () => undefined);
    closings.push(() => socket.destroy());
    socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    const isAnswered = await Promise.race([
      once(socket, "data").then(() => true),
      once(socket, "close").then(() => false),
    ]);
    return isAnswered ? socket : undefined;
  }
  const idle = [await connection(), await connection()];
  expect(await connection()).toBeUndefined();
  await expect.poll(connection).toBeDefined();
  expect(idle.every((socket) => socket?.readableEnded)).toBe(true);
});
