import type { IncomingMessage, ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Request } from "express";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, describe, expect, test } from "vitest";
import { readBytes } from "../../api/http/read-json.ts";
import { clientLimits, createHttpServer } from "../../api/http/server.ts";
import { messageOf } from "../../shared/errors.ts";
import { becomes } from "../harness/assertions/eventually.ts";
import { readSource } from "../harness/assertions/sources.ts";
import { sendRaw } from "../harness/clients/raw-http.ts";
import { listenOn } from "../harness/stubs/listen.ts";

/** Clients that send or read too slowly, at the API's HTTP server with shorter time limits. */

const limits = { headMs: 300, requestMs: 400, checkIntervalMs: 50, stallMs: 1_000, takeMs: 600_000 };
// More than the socket buffers of both ends.
const large = Buffer.alloc(32 * 1024 * 1024, "a");

const closings: (() => void)[] = [];
afterAll(() => {
  for (const close of closings) close();
});

async function serve(
  answer: (request: IncomingMessage, response: ServerResponse) => unknown,
  timeLimits = limits,
): Promise<number> {
  const server = createHttpServer((request, response) => void answer(request, response), { limits: timeLimits });
  closings.push(() => server.close());
  return listenOn(server);
}

/** Sends one request, or several pipelined ones. Nothing of the answers is read until the socket is. */
async function ask(answer: (response: ServerResponse) => unknown, times = 1): Promise<Socket> {
  const socket = connect(await serve((_request, response) => answer(response)), "127.0.0.1");
  closings.push(() => socket.destroy());
  socket.pause().on("error", () => undefined);
  socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(times));
  return socket;
}

describe.concurrent("slow clients", () => {
  test("the limits of the API disconnect a slow sender within 10 s, and the message and the page have them", () => {
    const { headMs, requestMs, checkIntervalMs } = clientLimits;
    expect(Math.max(headMs, requestMs) + checkIntervalMs).toBeLessThan(10_000);
    const said = `longer than ${requestMs / 1_000} s to arrive, or its headers longer than ${headMs / 1_000} s`;
    expect(messageOf("bad_request", { reason: "request_too_slow" })).toContain(said);
    expect(readSource("docs/api.md")).toContain(said);
  });

  const drip = { bytes: "a", everyMs: 20 };
  const post = "POST / HTTP/1.1\r\nHost: a\r\n";
  test.each([
    { title: "a head", bytes: "GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ", drip },
    { title: "a body", bytes: `${post}Content-Length: 100000\r\n\r\n`, drip },
    { title: "a chunked body", bytes: `${post}Transfer-Encoding: chunked\r\n\r\nfffff\r\n`, drip },
    { title: "a body that stops before its length", bytes: `${post}Content-Length: 100\r\n\r\n{` },
    {
      title: "a body that its sender waits to send",
      bytes: `${post}Expect: 100-continue\r\nContent-Length: 100\r\n\r\n`,
    },
    { title: "a head that stops", bytes: "GET / HTTP/1.1\r\nHost: a\r\n" },
  ])("$title that is sent too slowly gets a 408, and the connection ends", async ({ bytes, ...sending }) => {
    // readBytes uses nothing that Express adds to a request.
    const port = await serve((request) => readBytes(request as Request, 1_000_000).catch(() => undefined));
    const { answers, closed } = await sendRaw(`http://127.0.0.1:${port}`, bytes, sending);
    expect(closed).toBe(true);
    const error = { code: "bad_request", details: { reason: "request_too_slow" } };
    expect(answers).toMatchObject([{ status: 408, body: { error } }]);
  });

  describe("a caller that is answered before it has sent its body", () => {
    const restBytes = 1_000_000;

    /** Sends one byte of a body until the answer is there, and the server has nothing more to say. */
    async function readAnswer() {
      const none = 600_000;
      const timeLimits = { ...limits, headMs: none, requestMs: none, stallMs: none };
      const { promise: ended, resolve } = Promise.withResolvers<void>();
      const port = await serve(({ socket }, response) => {
        socket.once("close", () => resolve());
        response.writeHead(400, { Connection: "close" }).end("refused");
      }, timeLimits);
      const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
      closings.push(() => socket.destroy());
      const errors: Error[] = [];
      socket.on("error", (error) => errors.push(error));
      socket.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${restBytes + 1}\r\n\r\na`);
      socket.setEncoding("utf8");
      const answer = (await socket.toArray()).join("");
      expect(answer).toContain("refused");
      return { socket, errors, ended };
    }

    test("can still send the rest, and the connection is not reset", async () => {
      const { socket, errors, ended } = await readAnswer();
      socket.end(large.subarray(0, restBytes));
      await ended;
      expect({ errors, unsent: socket.writableLength }).toEqual({ errors: [], unsent: 0 });
    });

    test("is disconnected if it sends no end, long before its time for the request is over", async () => {
      const { ended } = await readAnswer();
      await expect(ended).resolves.toBeUndefined();
    });
  });

  test.each([
    { title: "one answer", times: 1 },
    { title: "several pipelined answers", times: 8 },
  ])("a reader that takes nothing of $title is disconnected", async ({ times }) => {
    const closed = new Promise<ServerResponse>((resolve) => {
      void ask((response) => response.once("close", () => resolve(response)).end(large), times);
    });
    expect(await closed).toMatchObject({ writableEnded: true, writableFinished: false });
  });

  test("a reader that takes nothing more of an event stream is disconnected", async () => {
    const closed = new Promise<ServerResponse>((resolve) => {
      void ask((response) => response.once("close", () => resolve(response)).write(large));
    });
    expect(await closed).toMatchObject({ writableEnded: false });
  });

  test("a slow reader that keeps reading gets the whole answer", async () => {
    const readSlowly = async () => {
      const socket = await ask((response) => response.setHeader("Connection", "close").end(large));
      let [length, readAtMs, longestPauseMs] = [0, performance.now(), 0];
      for await (const chunk of socket) {
        length += chunk.length;
        longestPauseMs = Math.max(longestPauseMs, performance.now() - readAtMs);
        readAtMs = performance.now();
        await sleep(6); // About 500 chunks, so several times the limit in all.
      }
      return { length, longestPauseMs };
    };
    let read = await readSlowly();
    // A reader that a busy machine has paused did not keep reading.
    while (read.longestPauseMs > limits.stallMs / 2) read = await readSlowly();
    expect(read.length).toBeGreaterThan(large.length);
  });

  test("a reader that takes a little now and then is disconnected once it has had its time for the answer", async () => {
    const { promise: closed, resolve } = Promise.withResolvers<ServerResponse>();
    const port = await serve((_request, response) => response.once("close", () => resolve(response)).end(large), {
      ...limits,
      takeMs: 500,
    });
    const socket = connect(port, "127.0.0.1").on("error", () => undefined);
    closings.push(() => socket.destroy());
    socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    for await (const _ of socket.iterator({ destroyOnReturn: false })) await sleep(limits.stallMs / 10);
    expect(await closed).toMatchObject({ writableEnded: true, writableFinished: false });
  });

  test("an answer that ends after its caller has left is not kept in memory for the time of a reader", async () => {
    const [arrived, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<WeakRef<ServerResponse>>()];
    const socket = await ask((response) => {
      response.once("close", () => ended.resolve(new WeakRef(response.end("late"))));
      arrived.resolve();
    });
    await arrived.promise;
    socket.destroy();
    const late = await ended.promise;
    const isGone = async () => {
      collectGarbage();
      return late.deref() === undefined;
    };
    expect(await becomes(isGone)).toBe(true);
  });

  test("an answer may come late, and an event stream may pause, for longer than the limit of readers", async () => {
    const socket = await ask(async (response) => {
      await sleep(limits.stallMs * 2);
      response.setHeader("Connection", "close").write("first");
      await sleep(limits.stallMs * 2);
      response.end("last");
    });
    socket.setEncoding("utf8");
    const text = (await socket.toArray()).join("");
    expect(text).toContain("first");
    expect(text).toContain("last");
  });
});

function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  runInNewContext("gc()");
}

function heapBytes(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

const patient = { ...limits, headMs: 60_000, requestMs: 60_000 };
const chunks = 70_000;
const chunked = `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${"1\r\na\r\n".repeat(chunks)}`;

test.each([
  {
    title: "is being read",
    // readBytes uses nothing that Express adds to a request.
    take: (request: IncomingMessage) => void readBytes(request as Request, 2 * chunks).catch(() => undefined),
    hasArrived: ({ socket }: IncomingMessage) => socket.bytesRead === chunked.length,
  },
  {
    title: "is not read yet",
    take: () => undefined,
    hasArrived: (request: IncomingMessage) => request.readableLength >= request.readableHighWaterMark,
  },
])("a body in chunks of one byte that $title takes a few MB of memory at most", async ({ take, hasArrived }) => {
  const requests: IncomingMessage[] = [];
  const port = await serve((request) => {
    requests.push(request);
    take(request);
  }, patient);
  const before = heapBytes();
  const sockets = [1, 2, 3].map(() => connect(port, "127.0.0.1"));
  for (const socket of sockets) {
    closings.push(() => socket.destroy());
    socket.on("error", () => undefined).write(chunked);
  }
  await expect.poll(() => requests.length === 3 && requests.every(hasArrived)).toBe(true);
  expect((heapBytes() - before) / 3).toBeLessThan(8_000_000);
});
