import { SupervisedProcess } from "../../harness/processes/supervised-process.ts";
import { type Proxy, startProxy } from "../../harness/servers/proxy.ts";

/** The proxies between a process and its servers. */
export interface Links {
  postgres: Proxy;
  redis: Proxy;
  /** From callers to an API, or from a worker to the provider. */
  outside: Proxy;
}

/** A supervised API or worker behind proxies, at addresses that outlive its restarts. Each connection can fail alone. */
export class ClusterProcess extends SupervisedProcess {
  readonly links: Links;
  /** When a fault kept it from answering, by `performance.now()`. */
  readonly unreachable: { fromMs: number; toMs: number }[] = [];

  private constructor(kind: "api" | "worker", number: number, links: Links, environment: Record<string, string>) {
    super({
      kind,
      number,
      environment,
      onStart: (run) => {
        if (kind === "worker") return;
        const leadThere = async () => {
          const { port } = await run.line("listening");
          links.outside.lead(`http://127.0.0.1:${String(port)}`);
        };
        void leadThere().catch(() => undefined); // Killed before it listened.
      },
    });
    this.links = links;
  }

  static async open(options: {
    kind: "api" | "worker";
    number: number;
    addresses: { postgres: string; redis: string; outside: string };
    environment: Record<string, string>;
  }): Promise<ClusterProcess> {
    const { kind, number, addresses } = options;
    const [postgres, redis, outside] = await Promise.all([
      startProxy(addresses.postgres),
      startProxy(addresses.redis),
      startProxy(addresses.outside),
    ]);
    const environment = {
      ...options.environment,
      DATABASE_URL: postgres.url,
      REDIS_URL: redis.url,
      ...(kind === "worker" && { SERPER_BASE_URL: outside.url }),
    };
    return new ClusterProcess(kind, number, { postgres, redis, outside }, environment);
  }

  /** Ends all faults of its connections, and a freeze. */
  mend(): void {
    for (const link of Object.values(this.links)) link.mend();
    this.resume();
  }

  override async close(): Promise<void> {
    await super.close();
    await Promise.all(Object.values(this.links).map((link: Proxy) => link.close()));
  }
}
