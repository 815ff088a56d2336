import { expect } from "vitest";
import { z } from "zod";
import { type Ended, run } from "./run.ts";
import type { Service } from "./service.ts";

/** An operator at the service's data, who has nothing but the commands. */
export class Operator {
  readonly #environment: Record<string, string>;

  /** `settings` are the operator's own, in place of the service's. */
  constructor(service: Service, settings: Record<string, string> = {}) {
    this.#environment = { DATABASE_URL: service.databaseUrl, REDIS_URL: service.redisServer.url, ...settings };
  }

  try(...args: string[]): Promise<Ended> {
    return run("shared/admin.ts", args, this.#environment);
  }

  /** Runs a command that succeeds and says nothing else. @returns its one line of JSON. */
  async run(...args: string[]): Promise<unknown> {
    const { exitCode, stdout, stderr } = await this.try(...args);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    return readLine(stdout);
  }

  /** An organization as a person makes one. */
  async create(plan: string, ...options: string[]) {
    return created.parse(await this.run("org", "create", "--name", "Acme", "--plan", plan, ...options));
  }
}

/** The one line of JSON on stdout. */
export function readLine(stdout: string): unknown {
  expect(stdout).toMatch(/^[^\n]+\n$/);
  return JSON.parse(stdout);
}

const created = z.strictObject({
  orgId: z.string().regex(/^org_[0-7][0-9a-z]{25}$/),
  token: z.string().regex(/^smk_[a-z0-9]{39}$/),
  tokenId: z.string().regex(/^tok_[0-7][0-9a-z]{25}$/),
  plan: z.string(),
  creditBalanceMils: z.int(),
});
