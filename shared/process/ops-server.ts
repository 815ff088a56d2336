import type { RequestListener } from "node:http";
import { type AddressInfo, isIP } from "node:net";
import { withTimeout } from "../concurrency/wait-for.ts";
import { requireSchema } from "../database/require-schema.ts";
import type { Context } from "./context.ts";
import { createServer, securityHeaders } from "./http.ts";

const checkTimeoutMs = 500;
// Well below the two seconds that a stopping API still serves, so that probes see it stop in time.
const checkIntervalMs = 200;

const otherName = "use an IP address, localhost, a host name without dots, or one of OPS_ALLOWED_HOSTS\n";

const answerHeaders = { "cache-control": "no-store", ...securityHeaders };

/** What the ops port has once a process has started. */
export interface OpsParts {
  /** What the process needs besides its connections to Redis: a name, and a check that rejects while it is missing. */
  checks: Record<string, () => Promise<unknown>>;
  queues?: RequestListener;
}

/**
 * Opens the ops port, which must not be public: `/livez` (the event loop runs), `/readyz` (lists missing dependencies),
 * `/metrics`; in the API `/queues`. It is the first that a process opens: an orchestrator must not replace one that waits for Redis.
 * @returns a function that takes what the process has opened since. Until then it is not ready, and `/readyz` lists `start`.
 */
export async function startOpsServer(context: Context, port: number): Promise<(opened: OpsParts) => void> {
  const { config, connections, database, metrics, redis, shutdown, log } = context;
  let readiness = new Readiness({
    start: () => Promise.reject(new Error("the process has not started yet")),
    redis: () => redis.ping(),
    postgres: () => requireSchema(database),
  });
  let queues: RequestListener | undefined;
  const readMissing = async () => [
    ...(await readiness.read()),
    ...connections.notReady().map((name) => `redis ${name}`),
  ];
  const server = createServer((request, response) => {
    const answer = (status: number, type: string, body: string) => {
      const headers = { ...answerHeaders, "content-type": type, "content-length": Buffer.byteLength(body) };
      response.writeHead(status, headers).end(body);
    };
    const path = request.url?.split("?")[0] ?? "";
    if (request.method !== "GET" && request.method !== "HEAD") {
      response.setHeader("allow", "GET, HEAD");
      return answer(405, "text/plain", "only GET and HEAD\n");
    }
    if (path === "/livez") return answer(200, "application/json", '{"live":true}');
    if (path === "/readyz") {
      return void readMissing().then((missing) => {
        answer(
          missing.length ? 503 : 200,
          "application/json",
          JSON.stringify({ ready: missing.length === 0, missing }),
        );
      });
    }
    // Probes of proxies send any Host, or none. The answers above are of no use to a page of another site.
    if (!isOwnName(request.headers.host, config.OPS_ALLOWED_HOSTS)) return answer(421, "text/plain", otherName);
    if (path === "/metrics") {
      return void readMetrics(context, readiness).then(
        (text) => answer(200, metrics.registry.contentType, text),
        () => answer(500, "text/plain", "metrics could not be collected\n"),
      );
    }
    if (queues && /^\/queues(\/|$)/.test(path)) return queues(request, response);
    return answer(404, "text/plain", `paths: /livez /readyz /metrics${queues ? " /queues" : ""}\n`);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, config.HOST, resolve);
  });
  shutdown.register("ops port", () => {
    server.close();
    server.closeAllConnections();
  });
  // A server that listens on TCP has an address with a port.
  log.info({ port: (server.address() as AddressInfo).port }, "ops port open");
  return (opened) => {
    readiness = new Readiness(opened.checks);
    queues = opened.queues;
  };
}

/**
 * Against DNS rebinding: a web page that points its own host name at this port, from the operator's browser, sends that name.
 * It has a dot, other than the names inside a container network.
 */
function isOwnName(host: string | undefined, allowed: readonly string[]): boolean {
  const hostname = URL.parse(`http://${host ?? ""}`)?.hostname;
  return hostname !== undefined && (!hostname.includes(".") || isIP(hostname) !== 0 || allowed.includes(hostname));
}

/** A scrape runs the checks too, so that an alert shows what a process lacks without a separate probe. */
async function readMetrics({ metrics, connections }: Context, readiness: Readiness): Promise<string> {
  const missing = await readiness.read();
  metrics.readinessChecks.reset(); // The check `start` ends with the start.
  for (const check of readiness.names) metrics.readinessChecks.set({ check }, missing.includes(check) ? 0 : 1);
  metrics.readinessChecks.set({ check: "connections" }, connections.notReady().length > 0 ? 0 : 1);
  return metrics.registry.metrics();
}

/** Runs the checks at most five times a second, however many probes come. */
class Readiness {
  readonly #checks: OpsParts["checks"];
  #checkedAtMs = Number.NEGATIVE_INFINITY;
  #missing: Promise<string[]> = Promise.resolve([]);

  constructor(checks: OpsParts["checks"]) {
    this.#checks = checks;
  }

  get names(): string[] {
    return Object.keys(this.#checks);
  }

  read(): Promise<string[]> {
    const now = performance.now();
    if (now - this.#checkedAtMs < checkIntervalMs) return this.#missing;
    this.#checkedAtMs = now;
    this.#missing = Promise.all(
      Object.entries(this.#checks).map(async ([name, check]) => {
        try {
          await withTimeout(checkTimeoutMs, check());
          return [];
        } catch {
          return [name];
        }
      }),
    ).then((missing) => missing.flat());
    return this.#missing;
  }
}
