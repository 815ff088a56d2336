import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { withTimeout } from "../../../shared/concurrency/wait-for.ts";
import { grantCredit } from "../../../shared/credits/ledger.ts";
import { newId } from "../../../shared/ids.ts";
import { ledgerViolations } from "../audit/audit.ts";
import { priceMils } from "../audit/evidence.ts";
import { type Cluster, type Customer, type CustomerToken, tokenOf } from "./cluster.ts";
import type { PlannedRequest } from "./plan.ts";

const timeoutMs = 12_000;
const topUpMils = 10 * priceMils;
const usageAnswer = z.object({ creditBalanceMils: z.number() });

/** All traffic besides searches: usage, top-ups, corrections, changes of limits, verification of the ledger, bad requests. */
export class BackgroundTraffic {
  /** Wrong answers, as sentences. */
  readonly wrong: string[] = [];
  /** How often the ledger was verified meanwhile. */
  verified = 0;
  readonly #cluster: Cluster;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  /** Sends as planned until `stop` aborts. */
  async run(planned: readonly PlannedRequest[], stop: AbortSignal): Promise<void> {
    for (const request of planned) {
      await sleep(request.afterMs, undefined, { signal: stop }).catch(() => undefined);
      if (stop.aborted) return;
      const customer = this.#cluster.customers[request.organization];
      // A request that a fault breaks does not count; a wrong answer is recorded.
      if (customer) await this.#run(request, customer).catch(() => undefined);
    }
  }

  async #run({ kind, api, token, limit, correction }: PlannedRequest, customer: Customer): Promise<void> {
    switch (kind) {
      case "read usage":
        return this.#readUsage(customer, tokenOf(customer, token), api);
      case "change a limit":
        if (customer.kind === "capped") await this.#changeLimit(customer, tokenOf(customer, token), limit);
        return;
      case "correct the balance":
        return this.#cluster.corrections.correct(
          customer.organizationId,
          correction.searches * priceMils,
          correction.copies,
        );
      case "verify the ledger":
        return this.#verify();
      case "top up":
        if (customer.kind === "tight") await this.#topUp(customer);
        return;
      case "another engine":
        return this.#search(customer, api, { keyword: "x", engine: "bing" }, 501);
      case "a bad request":
        return this.#search(customer, api, { keyword: "x", depth: "ten" }, 400);
    }
  }

  async #readUsage(customer: Customer, token: CustomerToken, api: 0 | 1): Promise<void> {
    const response = await this.#send(token, api, "/v1/usage", { method: "GET" });
    const text = await response.text();
    if (!token.scopes.includes("usage")) return this.#expect(response, [401, 429, 503], "usage without the scope");
    // The balance never exceeds what was added by the time the answer was read.
    const addedMils = customer.grantedMils + this.#cluster.corrections.addedMilsMaxOf(customer.organizationId);
    if (response.status !== 200) return this.#expect(response, [402, 429, 503], "usage");
    const { creditBalanceMils } = usageAnswer.parse(JSON.parse(text));
    if (creditBalanceMils < 0 || creditBalanceMils > addedMils)
      this.wrong.push(`usage of ${customer.organizationId} said ${creditBalanceMils} of ${addedMils} mils added`);
  }

  /** The operator's own check must hold at any moment and under any fault. */
  async #verify(): Promise<void> {
    const violations = await withTimeout(timeoutMs, ledgerViolations(this.#cluster.service));
    this.verified += 1;
    for (const violation of violations) this.wrong.push(`verified under faults: ${violation}`);
  }

  /** Counts the grant, then sends it until it succeeds. Under one id it is granted once. */
  async #topUp(customer: Customer): Promise<void> {
    const { database } = this.#cluster.service;
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

  async #changeLimit(
    { organizationId }: Customer,
    { tokenId }: CustomerToken,
    { owner: kind, period, searches }: PlannedRequest["limit"],
  ): Promise<void> {
    const id = kind === "token" ? tokenId : organizationId;
    const mils = searches === null ? null : searches * priceMils;
    await this.#cluster.limits.change({ kind, organizationId, id }, { [period]: mils });
  }

  async #search(customer: Customer, api: 0 | 1, body: object, status: number): Promise<void> {
    const response = await this.#send(customer, api, "/v1/serp/search", { method: "POST", body: JSON.stringify(body) });
    this.#expect(response, [status, 429, 503], JSON.stringify(body));
  }

  async #send({ token }: { token: string }, api: 0 | 1, path: string, init: RequestInit): Promise<Response> {
    return fetch(this.#cluster.addressOf(api, path), {
      ...init,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      signal: AbortSignal.timeout(timeoutMs),
    });
  }

  #expect({ status }: Response, expected: readonly number[], what: string): void {
    if (!expected.includes(status))
      this.wrong.push(`${what} was answered ${status}, expected ${expected.join(" or ")}`);
  }
}
