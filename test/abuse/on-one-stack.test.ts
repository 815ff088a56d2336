import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { afterAll, expect, inject, test } from "vitest";
import { notHeld } from "../faults/report.ts";
import { stackServers } from "../harness/servers/servers.ts";
import { tenOrganic } from "../harness/stubs/serper-stub.ts";
import { attacks } from "./all.ts";
import type { Attack, Finding } from "./attack.ts";
import { openAttackStack } from "./attack-stack.ts";

/**
 * An attacker gets nothing for free and stops no other caller. Quick attacks, for what they gain and not for how fast others
 * are served; `npm run abuse` strikes with full force.
 */

const attemptsMax = 3;
// A token's lookup times out after 1,500 ms. If a connection to Postgres takes this long, a broken promise says nothing about
// the service.
const connectMsMax = 250;
const pauseMs = 100;

const stack = await openAttackStack(stackServers(), { workers: 2 });
afterAll(() => stack.close());

test.each(attacks.filter(({ sharesStack }) => sharesStack))("$name", async (attack) => {
  const findings = await strike(attack);
  expect(notHeld(findings)).toEqual([]);
  expect(findings.length).toBeGreaterThan(0);
});

/** Attacks a service, once more if the machine was too busy to judge it. */
async function strike(attack: Attack): Promise<Finding[]> {
  for (let attempt = 1; ; attempt += 1) {
    stack.provider.otherwise = tenOrganic;
    stack.provider.requests.length = 0;
    // Not to the attack's own database, of which some attacks count the transactions.
    const struck = await besidePostgres(inject("postgresUrl"), () => attack.run(stack, "quick"));
    const { value: findings, longestMs } = struck;
    if (notHeld(findings).length === 0 || longestMs <= connectMsMax || attempt === attemptsMax) return findings;
  }
}

/**
 * Does something, and connects to Postgres again and again meanwhile. The longest time tells whether the machine was so busy that
 * the service's own timeouts say nothing about the service.
 * @returns its result, and the longest time that a new connection and a query on it took, in ms.
 * @throws what it throws, or why Postgres could not be reached.
 */
async function besidePostgres<T>(url: string, something: () => Promise<T>): Promise<{ value: T; longestMs: number }> {
  const over = new AbortController();
  const working = something().finally(() => over.abort());
  const [value, longestMs] = await Promise.all([working, longestConnectionMs(url, over.signal)]);
  return { value, longestMs };
}

async function longestConnectionMs(url: string, over: AbortSignal): Promise<number> {
  let longestMs = 0;
  do {
    const client = new Client(url);
    const beganAtMs = performance.now();
    try {
      await client.connect();
      await client.query("select 1");
    } finally {
      await client.end();
    }
    longestMs = Math.max(longestMs, performance.now() - beganAtMs);
    await sleep(pauseMs, undefined, { signal: over }).catch(() => undefined);
  } while (!over.aborted);
  return longestMs;
}
