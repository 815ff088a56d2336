import { setTimeout as sleep } from "node:timers/promises";
import { storeBalance } from "../../../shared/credits/holds.ts";
import { readBalance } from "../../../shared/credits/ledger.ts";
import { startRedis } from "../../../shared/local/redis.ts";
import { freshDatabaseIn } from "../../harness/servers/fresh-database.ts";
import { reply, type SerperStub, startSerperStub } from "../../harness/stubs/serper-stub.ts";
import { type Organization, Service } from "../../harness/processes/service.ts";
import { Place } from "./place.ts";

/** What a provider does with a call: how long it takes, and whether it fails. `nth` counts the calls of this case. */
export type Behaviour = (nth: number) => { ms: number; fails: boolean };

const usual: Behaviour = () => ({ ms: 50, fails: false });

/**
 * A whole service of its own in which one case after the other is played: a database, a Redis, a provider, two APIs and
 * two workers that can be told where to die.
 */
export class IsolatedStack {
  readonly service: Service;
  readonly deadlineMs: number;
  readonly apis: readonly [Place, Place];
  readonly workers: readonly [Place, Place];
  /** The keywords that the provider was asked for in this case, and whether it answered. */
  calls: { keyword: string; answered: boolean }[] = [];
  behaviour: Behaviour = usual;
  onAsked: () => void = () => undefined;
  readonly #stub: SerperStub;

  private constructor(service: Service, stub: SerperStub, deadlineMs: number) {
    this.service = service;
    this.deadlineMs = deadlineMs;
    this.#stub = stub;
    const environment = {
      DATABASE_URL: service.databaseUrl,
      REDIS_URL: service.redisServer.url,
      API_PORT: "0",
      API_OPS_PORT: "0",
      WORKER_OPS_PORT: "0",
      SEARCH_DEADLINE_MS: String(deadlineMs),
      SERP_PROVIDERS: "serper",
      SERPER_API_KEY: "stub",
      SERPER_BASE_URL: stub.url,
    };
    this.apis = [new Place("api", 0, environment), new Place("api", 1, environment)];
    this.workers = [new Place("worker", 0, environment), new Place("worker", 1, environment)];
    stub.otherwise = (request, response) =>
      void this.#answer(String(request.body["q"]), (json, status) => {
        reply(status, json)(request, response);
      });
  }

  static async open(postgresUrl: string, deadlineMs: number): Promise<IsolatedStack> {
    const [database, redis, stub] = await Promise.all([freshDatabaseIn(postgresUrl), startRedis(), startSerperStub()]);
    const service = await Service.start({ apis: 0, workers: 0, servers: { database, redis } });
    return new IsolatedStack(service, stub, deadlineMs);
  }

  get places(): readonly Place[] {
    return [...this.apis, ...this.workers];
  }

  /** Everything runs, nobody is to die, and the provider is as usual. */
  async ready(): Promise<void> {
    this.behaviour = usual;
    this.onAsked = () => undefined;
    this.calls = [];
    for (const place of this.places) {
      place.restarts = true;
      place.onDeath = () => undefined;
      place.signal("SIGCONT");
    }
    await Promise.all(this.places.map((place) => place.ready()));
    await Promise.all(this.places.map((place) => place.arm(null)));
  }

  /** An organization with credit; Redis has a copy of its balance, unless it is to be cold. */
  async customer(options: { cold: boolean }): Promise<Organization & { grantedMils: number }> {
    const grantedMils = 1_000;
    const organization = await this.service.organization({ creditMils: grantedMils });
    if (!options.cold) await this.store(organization.organizationId);
    return { ...organization, grantedMils };
  }

  async store(organizationId: string): Promise<void> {
    const balance = await readBalance(this.service.database, organizationId);
    if (balance) await storeBalance(this.service.redis, organizationId, balance);
  }

  async close(): Promise<void> {
    for (const place of this.places) place.kill();
    await this.#stub.close();
    await this.service.stop();
  }

  // No two answers are alike, so that a repeat that was searched anew does not pass for the remembered one.
  async #answer(keyword: string, send: (json: unknown, status: number) => void): Promise<void> {
    const call = { keyword, answered: false };
    this.calls.push(call);
    const nth = this.calls.length;
    const { ms, fails } = this.behaviour(nth);
    this.onAsked();
    await sleep(ms, undefined, { ref: false });
    call.answered = !fails;
    if (fails) return send({ message: "Server error" }, 500);
    const link = `https://pumps.example/${nth}`;
    send({ organic: [{ title: `Pump ${nth}`, link, snippet: "A pump.", position: 1 }], credits: 1 }, 200);
  }
}
