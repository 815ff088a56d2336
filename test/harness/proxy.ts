import { connect, createServer, type Server, type Socket } from "node:net";

/** A way to a server that a test can cut and mend, for servers that others use too. */
export interface Proxy {
  /** The server's address with the proxy in its place. */
  url: string;
  /** Breaks every connection and takes no new one. */
  cut: () => void;
  mend: () => void;
  close: () => Promise<void>;
}

/** Opens a proxy in front of the server at this address. */
export async function startProxy(serverUrl: string): Promise<Proxy> {
  const target = new URL(serverUrl);
  const sockets = new Set<Socket>();
  let isCut = false;
  const server = createServer((caller) => {
    const callee = connect({ host: target.hostname, port: Number(target.port) });
    for (const [socket, other] of [
      [caller, callee],
      [callee, caller],
    ] as const) {
      sockets.add(socket);
      socket.on("error", () => undefined); // The other side learns of it by the close.
      socket.once("close", () => {
        sockets.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
    if (isCut) caller.destroy();
  });
  const cut = () => {
    isCut = true;
    for (const socket of sockets) socket.destroy();
  };
  const mend = () => {
    isCut = false;
  };
  const close = () => {
    cut();
    return new Promise<void>((resolve) => {
      server.close(() => resolve());
    });
  };
  return { url: await listen(server, target), cut, mend, close };
}

async function listen(server: Server, target: URL): Promise<string> {
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("a server that listens on TCP has a port");
  const url = new URL(target);
  url.host = `127.0.0.1:${address.port}`;
  return url.href;
}
