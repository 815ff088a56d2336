import { once } from "node:events";
import { createServer } from "node:net";
import { expect, test } from "vitest";
import { claimPort, freePort } from "../../local/ports.ts";

test("a port that is in use is skipped for the next free one", async () => {
  const taken = await freePort();
  const server = createServer().listen(taken, "127.0.0.1");
  await once(server, "listening");
  expect(await claimPort(taken, "127.0.0.1")).toBeGreaterThan(taken);
  server.close();
});

test("two checkouts that start at the same time never choose the same port", async () => {
  const wanted = await freePort();
  const chosen = await Promise.all([claimPort(wanted, "127.0.0.1"), claimPort(wanted, "127.0.0.1")]);
  expect(new Set(chosen).size).toBe(2);
});

test("a host that is no address of this machine is named", async () => {
  await expect(claimPort(await freePort(), "192.0.2.1")).rejects.toThrow("HOST: expected an address of this machine");
});
