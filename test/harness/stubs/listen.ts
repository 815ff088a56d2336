import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo, Server } from "node:net";

export type Listening = { url: string; close: () => Promise<void> };

/** Has a server listen on a free loopback port. @returns the port. */
export async function listenOn(server: Server): Promise<number> {
  await once(server.listen(0, "127.0.0.1"), "listening");
  // A server that listens on TCP has an address with a port.
  return (server.address() as AddressInfo).port;
}

/** A real HTTP server on a free loopback port. Closing it also ends open requests. */
export async function listen(answer: RequestListener): Promise<Listening> {
  const server = createServer(answer);
  return {
    url: `http://127.0.0.1:${await listenOn(server)}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
