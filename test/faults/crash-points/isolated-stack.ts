import { setTimeout as sleep } from "node:timers/promises";
import { storeBalance } from "../../../shared/credits/stored-balances.ts";
import { readCredit } from "../../../shared/credits/ledger.ts";
import { changeLimits } from "../../../api/organizations/limits.ts";
import { startRedis } from "../../../local/redis.ts";
import { type Organization, Service } from "../../harness/processes/service.ts";
import { freshDatabaseIn } from "../../harness/servers/fresh-database.ts";
import { reply, type SerperStub, startSerperStub } from "../../harness/stubs/serper-stub.ts";
import type { ProviderCall } from "../audit/evidence.ts";
import { CrashableProcess } from "./crashable-process.ts";

/** How the provider handles the `nth` call of a case: its delay, and whether it fails. */
export type Behaviour = (nth: number) => { ms: number; fails: boolean };

const usual: Behaviour = () => ({ ms: 50, fails: false });
const grantedMils = 1_000;

/**
 * An isolated service in which cases run one after the other: a database, a Redis, a provider, and two APIs and two workers that
 * can be ordered to die.
 */
export class IsolatedStack {
  readonly service: Service;
  readonly deadlineMs: number;
  readonly apis: readonly [CrashableProcess, CrashableProcess];
  readonly workers: readonly [CrashableProcess, CrashableProcess];
  /** The provider's calls in this case. */
  calls: ProviderCall[] = [];
  behaviour: Behaviour = usual;
  onCall: () => void = () => undefined;
  readonly #stub: SerperStub;

  private constructor(service: Service, stub: SerperStub, deadlineMs: number) {
    this.service = service;
    this.deadlineMs = deadlineMs;
    this.#stub = stub;
    const environment = { ...service.environment, ...stub.settings, SEARCH_DEADLINE_MS: String(deadlineMs) };
    this.apis = [new CrashableProcess("api", 0, environment), new CrashableProcess("api", 1, environment)];
    this.workers = [new CrashableProcess("worker", 0, environment), new CrashableProcess("worker", 1, environment)];
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

  get processes(): readonly CrashableProcess[] {
    return [...this.apis, ...this.workers];
  }

  /** Makes every process run without an order, and the provider answer as usual. */
  async ready(): Promise<void> {
    this.behaviour = usual;
    this.onCall = () => undefined;
    this.calls = [];
    for (const process of this.processes) {
      process.restartsOnExit = true;
      process.onExit = () => undefined;
      process.resume();
    }
    await this.untilReady();
    await Promise.all(this.processes.map((process) => process.arm(null)));
  }

  async untilReady(): Promise<void> {
    await Promise.all(this.processes.map((process) => process.ready()));
  }

  /**
   * Creates an organization with credit, and with limits on itself and its token that allow it to spend that credit. Redis knows
   * its balance and what both spent, unless it is cold.
   */
  async customer(options: { cold: boolean }): Promise<Organization & { grantedMils: number }> {
    const { database, redis } = this.service;
    const organization = await this.service.organization({ creditMils: grantedMils });
    const { organizationId, tokenId } = organization;
    await changeLimits(database, "organization", organizationId, { dayMils: grantedMils });
    await changeLimits(database, "token", tokenId, { monthMils: grantedMils });
    const credit = await readCredit(database, organizationId, { tokenId });
    if (credit?.token && !options.cold) await storeBalance(redis, organizationId, credit.balance, [credit.token]);
    return { ...organization, grantedMils };
  }

  async close(): Promise<void> {
    await Promise.all(this.processes.map((process) => process.close()));
    await this.#stub.close();
    await this.service.stop();
  }

  // All answers differ, so that a new search does not pass for a replay.
  async #answer(keyword: string, send: (json: unknown, status: number) => void): Promise<void> {
    const call = { keyword, answeredAtMs: Number.POSITIVE_INFINITY };
    this.calls.push(call);
    const nth = this.calls.length;
    const { ms, fails } = this.behaviour(nth);
    this.onCall();
    await sleep(ms, undefined, { ref: false });
    if (fails) return send({ message: "Server error" }, 500);
    call.answeredAtMs = Date.now();
    const link = `https://pumps.example/${nth}`;
    send({ organic: [{ title: `Pump ${nth}`, link, snippet: "A pump.", position: 1 }], credits: 1 }, 200);
  }
}
