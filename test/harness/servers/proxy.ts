import { connect, createServer, type Server, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** The two directions of a connection, as the one who opened it sees them. */
export type Way = "requests" | "replies";
const bothWays = ["requests", "replies"] as const;

/** A way to a server that a test can hurt and mend, for servers that others use too. */
export interface Proxy {
  /** The server's address with the proxy in its place. */
  url: string;
  /** Leads somewhere else from now on, as to a process that was started anew. */
  lead: (serverUrl: string) => void;
  /** Breaks every connection and takes no new one. */
  cut: () => void;
  /** Breaks every connection; new ones are taken. */
  reset: () => void;
  /** Lets each piece pass only after this time. */
  delay: (delayMs: number) => void;
  /** Lets nothing pass in these directions, while connections stay open; what was held passes once it is mended, late. */
  silence: (...ways: Way[]) => void;
  /**
   * Breaks one connection around the next request that contains these bytes: after it was carried out and before its
   * reply is seen (`landed`), or before the server hears of it. The sender cannot tell which.
   */
  cutAround: (request: Buffer, landed: boolean) => void;
  /** Everything passes again. */
  mend: () => void;
  close: () => Promise<void>;
}

interface Trap {
  request: Buffer;
  landed: boolean;
}

/** What the proxy does to all its connections at the moment. */
class Weather {
  isCut = false;
  delayMs = 0;
  trap: Trap | undefined;
  readonly silent = new Set<Way>();
  #cleared = Promise.withResolvers<void>();

  /** Resolves when this direction is, or is again, open. */
  async passable(way: Way): Promise<void> {
    while (this.silent.has(way)) await this.#cleared.promise;
  }

  clear(): void {
    this.isCut = false;
    this.delayMs = 0;
    this.trap = undefined;
    this.silent.clear();
    this.#cleared.resolve();
    this.#cleared = Promise.withResolvers();
  }
}

/** Opens a proxy in front of the server at this address. */
export async function startProxy(serverUrl: string): Promise<Proxy> {
  let target = new URL(serverUrl);
  const weather = new Weather();
  const sockets = new Set<Socket>();
  const server = createServer((caller) => {
    if (weather.isCut) {
      caller.destroy();
      return;
    }
    const callee = connect({ host: target.hostname, port: Number(target.port), noDelay: true });
    caller.setNoDelay(true);
    for (const socket of [caller, callee]) {
      sockets.add(socket);
      socket.on("error", () => undefined); // The other side learns of it by the close.
      socket.once("close", () => {
        sockets.delete(socket);
        (socket === caller ? callee : caller).destroy();
      });
    }
    carry(weather, caller, callee);
  });
  const reset = () => {
    for (const socket of sockets) breakOff(socket);
  };
  const cut = () => {
    weather.isCut = true;
    reset();
  };
  return {
    url: await listen(server, target),
    lead: (otherUrl) => {
      target = new URL(otherUrl);
    },
    cut,
    reset,
    delay: (delayMs) => {
      weather.delayMs = delayMs;
    },
    silence: (...ways) => {
      for (const way of ways) weather.silent.add(way);
    },
    cutAround: (request, landed) => {
      weather.trap = { request, landed };
    },
    mend: () => weather.clear(),
    close: () => {
      cut();
      weather.silent.clear();
      return new Promise((resolve) => {
        server.close(() => resolve());
      });
    },
  };
}

function carry(weather: Weather, caller: Socket, callee: Socket): void {
  let swallowing = false;
  const breakUp = () => {
    breakOff(caller);
    breakOff(callee);
  };
  const pump = async (way: Way) => {
    const [from, to] = way === "requests" ? [caller, callee] : [callee, caller];
    for await (const chunk of from) {
      if (weather.delayMs > 0) await sleep(weather.delayMs);
      await weather.passable(way);
      // What arrives now is the reply to a request that was carried out: that is all this connection was kept for.
      if (swallowing && way === "replies") return breakUp();
      const { trap } = weather;
      if (way === "requests" && trap && chunk.includes(trap.request)) {
        weather.trap = undefined;
        if (!trap.landed) return breakUp();
        swallowing = true;
      }
      if (!to.write(chunk)) await drained(to);
    }
    to.end();
  };
  for (const way of bothWays) void pump(way).catch(breakUp);
}

// A connection that is being closed in order cannot be reset any more; Node would wait for its end for ever.
function breakOff(socket: Socket): void {
  if (socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}

/** Resolves when a socket takes more, or never will. */
function drained(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    if (socket.destroyed) return resolve();
    socket.once("drain", resolve);
    socket.once("close", () => resolve());
  });
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
