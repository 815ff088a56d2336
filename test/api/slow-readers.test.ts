import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import { createHttpServer } from "../../api/http/server.ts";

/** Those who ask and then take nothing, or take their time, at the server as callers meet it but for its patience. */

const stallMs = 400;
// More than both ends of a connection keep in between.
const large = Buffer.alloc(32 * 1024 * 1024, "a");

const shutdown: (() => void)[] = [];
afterEach(() => {
  for (const close of shutdown.splice(0)) close();
});

/** Asks once, or several times in a row; nothing of the answers is taken until the socket is read. */
async function ask(answer: (response: ServerResponse) => unknown, times = 1): Promise<Socket> {
  const server = createHttpServer((_request, response) => void answer(response), stallMs);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  // A server that listens on TCP has an address with a port.
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  shutdown.push(() => {
    socket.destroy();
    server.close();
  });
  socket.pause().on("error", () => undefined);
  socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(times));
  return socket;
}

test.each([
  { title: "one answer", times: 1 },
  { title: "several answers in a row", times: 8 },
])("whoever takes nothing of $title loses the connection", async ({ times }) => {
  const closed = new Promise<ServerResponse>((resolve) => {
    void ask((response) => response.once("close", () => resolve(response)).end(large), times);
  });
  expect(await closed).toMatchObject({ writableEnded: true, writableFinished: false });
});

test("an event stream whose reader takes nothing any more ends", async () => {
  const closed = new Promise<ServerResponse>((resolve) => {
    void ask((response) => response.once("close", () => resolve(response)).write(large));
  });
  expect(await closed).toMatchObject({ writableEnded: false });
});

test("a slow reader that goes on taking something gets all of it", async () => {
  const socket = await ask((response) => response.setHeader("Connection", "close").end(large));
  let length = 0;
  for await (const chunk of socket) {
    length += chunk.length;
    await sleep(3); // Of some 500 pieces: several times as long in all.
  }
  expect(length).toBeGreaterThan(large.length);
});

test("an answer may let wait for itself, and an event stream may be quiet, for longer than that", async () => {
  const socket = await ask(async (response) => {
    await sleep(stallMs * 3);
    response.setHeader("Connection", "close").write("first");
    await sleep(stallMs * 3);
    response.end("last");
  });
  socket.setEncoding("utf8");
  const text = (await socket.toArray()).join("");
  expect(text).toContain("first");
  expect(text).toContain("last");
});
