import { connect, createServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { listenOn } from "../stubs/listen.ts";

/** The two directions of a connection, as the client sees them. */
export type Way = "requests" | "replies";
const bothWays = ["requests", "replies"] as const;

/** A proxy with which a test breaks and restores one path to a server, while other clients reach the server directly. */
export interface Proxy {
  /** The server's address with the proxy in its place. */
  url: string;
  /** Forwards new connections to another server, for example to a restarted process. */
  lead: (serverUrl: string) => void;
  /** Breaks every connection and refuses new ones. */
  cut: () => void;
  /** Breaks every connection and accepts new ones. */
  reset: () => void;
  /** Delays each chunk by this time. */
  delay: (delayMs: number) => void;
  /** Holds all bytes in these directions while connections stay open. `mend` forwards the held bytes. */
  silence: (...ways: Way[]) => void;
  /**
   * The server's host is replaced by another: the connections that are open carry nothing any more and are not closed, and
   * new ones work. With a name, only the connections that have it in their first bytes.
   */
  replaceHost: (connectionName?: string) => void;
  /**
   * Breaks one connection at the next request that contains one of these texts: after the server carried it out and before its
   * reply is forwarded (`landed`), or before the server gets it. The sender cannot distinguish the two.
   */
  cutAround: (requests: readonly string[], landed: boolean) => void;
  /** Ends all faults. */
  mend: () => void;
  close: () => Promise<void>;
}

interface Trap {
  requests: readonly string[];
  landed: boolean;
}

/** One connection: the first bytes that the client sent, and whether its server is gone. */
interface Connection {
  greeting: string;
  isLost: boolean;
}

const greetingMax = 1_000;
const forever = new Promise<never>(() => undefined);

/** The faults that apply to all connections of the proxy now. */
class Faults {
  readonly connections = new Set<Connection>();
  isCut = false;
  delayMs = 0;
  trap: Trap | undefined;
  readonly silent = new Set<Way>();
  #cleared = Promise.withResolvers<void>();

  /** Resolves when this direction is not held, at once or later. */
  async passable(way: Way, connection: Connection): Promise<void> {
    while (this.silent.has(way)) await this.#cleared.promise;
    if (connection.isLost) await forever;
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

/** Opens a proxy in front of the server at this address. `end` gets what closes it, as `afterAll` does. */
export async function startProxy(serverUrl: string, end?: (close: () => Promise<void>) => void): Promise<Proxy> {
  let target = new URL(serverUrl);
  const faults = new Faults();
  const sockets = new Set<Socket>();
  const server = createServer((caller) => {
    if (faults.isCut) {
      caller.destroy();
      return;
    }
    const callee = connect({ host: target.hostname, port: Number(target.port), noDelay: true });
    caller.setNoDelay(true);
    for (const socket of [caller, callee]) {
      sockets.add(socket);
      socket.on("error", () => undefined); // The close event below destroys the other socket.
      socket.once("close", () => {
        sockets.delete(socket);
        (socket === caller ? callee : caller).destroy();
      });
    }
    carry(faults, caller, callee);
  });
  const reset = () => {
    for (const socket of sockets) breakOff(socket);
  };
  const cut = () => {
    faults.isCut = true;
    reset();
  };
  const close = () => {
    cut();
    faults.silent.clear();
    return new Promise<void>((resolve) => {
      server.close(() => resolve());
    });
  };
  end?.(close);
  return {
    url: Object.assign(new URL(target), { host: `127.0.0.1:${await listenOn(server)}` }).href,
    lead: (otherUrl) => {
      target = new URL(otherUrl);
    },
    cut,
    reset,
    delay: (delayMs) => {
      faults.delayMs = delayMs;
    },
    silence: (...ways) => {
      for (const way of ways) faults.silent.add(way);
    },
    replaceHost: (connectionName = "") => {
      for (const connection of faults.connections) connection.isLost ||= connection.greeting.includes(connectionName);
    },
    cutAround: (requests, landed) => {
      faults.trap = { requests, landed };
    },
    mend: () => faults.clear(),
    close,
  };
}

function carry(faults: Faults, caller: Socket, callee: Socket): void {
  let swallowing = false;
  const connection = { greeting: "", isLost: false };
  faults.connections.add(connection);
  caller.once("close", () => faults.connections.delete(connection));
  const breakUp = () => {
    breakOff(caller);
    breakOff(callee);
  };
  const pump = async (way: Way) => {
    const [from, to] = way === "requests" ? [caller, callee] : [callee, caller];
    for await (const chunk of from) {
      if (way === "requests" && connection.greeting.length < greetingMax)
        connection.greeting += chunk.toString("latin1");
      if (faults.delayMs > 0) await sleep(faults.delayMs);
      await faults.passable(way, connection);
      // This is the reply to the request that was carried out. The connection was kept open only until then.
      if (swallowing && way === "replies") return breakUp();
      const { trap } = faults;
      if (way === "requests" && trap?.requests.some((request) => chunk.includes(request))) {
        faults.trap = undefined;
        if (!trap.landed) return breakUp();
        swallowing = true;
      }
      if (!to.write(chunk)) await drained(to);
    }
    to.end();
  };
  for (const way of bothWays) void pump(way).catch(breakUp);
}

// A socket that has been ended cannot be reset: Node would wait for its close forever.
function breakOff(socket: Socket): void {
  if (socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}

/** Resolves when a socket accepts more bytes, or is closed. */
function drained(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    if (socket.destroyed) return resolve();
    const go = () => {
      socket.off("drain", go).off("close", go);
      resolve();
    };
    socket.on("drain", go).on("close", go);
  });
}
