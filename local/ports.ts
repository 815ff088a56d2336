import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:net";

// Below the range of ephemeral ports. So a restarted server finds its port free, and a client that connects to the port
// meanwhile cannot be given the same port and connect to itself.
const portMin = 20_000;
const portMax = 29_999;
const triesMax = 100;
const portHighest = 65_535;

/** A free port on the loopback interface. Another program may take it before it is used, so the caller has to retry. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < triesMax; tries += 1) {
    const port = portMin + Math.floor(Math.random() * (portMax - portMin + 1));
    if (await isFree(port, "127.0.0.1")) return port;
  }
  throw new Error(`No free port between ${portMin} and ${portMax} in ${triesMax} tries.`);
}

/**
 * The first port from `wanted` upwards that is free and that no other `npm start` has claimed. The claim is the UDP port of
 * the same number, which stays bound until this process ends. Binding is atomic, so two checkouts that start at the same
 * time never choose the same port, although each listens on it only seconds later. @throws if `host` is not this machine's.
 */
export async function claimPort(wanted: number, host: string): Promise<number> {
  for (let port = wanted; port <= portHighest; port += 1) {
    if ((await claim(port)) && (await isFree(port, host))) return port;
  }
  throw new Error(`No port from ${wanted} upwards is free on ${host}.`);
}

async function claim(port: number): Promise<boolean> {
  const socket = createSocket("udp4");
  const bound = once(socket, "listening");
  socket.bind({ port, address: "127.0.0.1", exclusive: true });
  try {
    await bound;
    socket.unref();
    return true;
  } catch {
    return false;
  }
}

async function isFree(port: number, host: string): Promise<boolean> {
  const server = createServer();
  const listening = once(server, "listening");
  server.listen({ port, host, exclusive: true });
  try {
    await listening;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EADDRNOTAVAIL")
      throw new Error(`HOST: expected an address of this machine, got ${host}`, { cause: error });
    return false;
  }
  server.close();
  await once(server, "close");
  return true;
}
