import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { withTimeout } from "../../../shared/concurrency/with-timeout.ts";
import { grantCredit } from "../../../shared/credits/ledger.ts";
import { newId } from "../../../shared/ids.ts";
import type { PlannedRequest } from "./plan.ts";
import { type Customer, priceMils, type Cluster } from "./cluster.ts";

const patienceMs = 12_000;
const topUpMils = 10 * priceMils;
const usageAnswer = z.object({ creditBalanceMils: z.number() });

/** What is done beside searching, until told to stop: reading usage, topping up, asking what is refused. */
export class BackgroundTraffic {
  /** What was wrong with an answer, told as sentences. */
  readonly wrong: string[] = [];
  /** How often the books were looked at while all this went on. */
  verified = 0;
  readonly #world: Cluster;

  constructor(world: Cluster) {
    this.#world = world;
  }

  async run(planned: readonly PlannedRequest[], stop: AbortSignal): Promise<void> {
    for (const errand of planned) {
      await sleep(errand.afterMs, undefined, { signal: stop }).catch(() => undefined);
      if (stop.aborted) return;
      const customer = this.#world.customers[errand.organization];
      // An errand that a fault prevents is given up; what it says wrongly is told.
      if (customer) await this.#run(errand, customer).catch(() => undefined);
    }
  }

  async #run({ kind, api }: PlannedRequest, customer: Customer): Promise<void> {
    switch (kind) {
      case "read usage":
        return this.#readUsage(customer, api);
      case "verify the books":
        return this.#verify();
      case "top up":
        if (customer.kind === "tight") await this.#topUp(customer);
        return;
      case "ask another engine":
        return this.#ask(customer, api, { keyword: "x", engine: "bing" }, 501);
      case "ask nonsense":
        return this.#ask(customer, api, { keyword: "x", depth: "ten" }, 400);
    }
  }

  async #readUsage(customer: Customer, api: 0 | 1): Promise<void> {
    const response = await this.#send(customer, api, "/v1/usage", { method: "GET" });
    const text = await response.text();
    // An answer is never more than what was granted by the time it was read.
    const grantedMils = customer.grantedMils;
    if (response.status !== 200) return this.#expect(response, [402, 429, 503], "usage");
    const { creditBalanceMils } = usageAnswer.parse(JSON.parse(text));
    if (creditBalanceMils < 0 || creditBalanceMils > grantedMils)
      this.wrong.push(`usage of ${customer.organizationId} said ${creditBalanceMils} of ${grantedMils} mils granted`);
  }

  /** The operator's own check has to be content at any moment, whatever is going on. */
  async #verify(): Promise<void> {
    const { violations } = await withTimeout(patienceMs, this.#world.service.verify());
    this.verified += 1;
    for (const { rule, subject, found } of violations)
      this.wrong.push(`verified meanwhile: ${rule}: ${subject}: ${found}`);
  }

  /** The grant is counted before it is made, and sent again until it is known to count: under one id it counts once. */
  async #topUp(customer: Customer): Promise<void> {
    const { database } = this.#world.service;
    const { organizationId } = customer;
    const grantId = newId("grant");
    customer.grantedMils += topUpMils;
    for (;;) {
      try {
        await grantCredit(database, { organizationId, grantId, mils: topUpMils, reason: "top-up" });
        return;
      } catch {
        await sleep(200);
      }
    }
  }

  async #ask(customer: Customer, api: 0 | 1, body: object, status: number): Promise<void> {
    const response = await this.#send(customer, api, "/v1/serp/search", { method: "POST", body: JSON.stringify(body) });
    this.#expect(response, [status, 429, 503], JSON.stringify(body));
  }

  async #send(customer: Customer, api: 0 | 1, path: string, init: RequestInit): Promise<Response> {
    return fetch(this.#world.addressOf(api, path), {
      ...init,
      headers: { authorization: `Bearer ${customer.token}`, "content-type": "application/json" },
      signal: AbortSignal.timeout(patienceMs),
    });
  }

  #expect({ status }: Response, expected: readonly number[], what: string): void {
    if (!expected.includes(status))
      this.wrong.push(`${what} was answered ${status} instead of ${expected.join(" or ")}`);
  }
}
