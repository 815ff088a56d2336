import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { z } from "zod";
import type { Terminal } from "../../../commands/run-command.ts";
import { type CommandResult, readLine, runAdminHere } from "../clients/admin.ts";
import { codeLoading } from "./code-loading.ts";
import { run } from "./run.ts";
import type { Service } from "./service.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));

/** An operator of the service. All work is done with the commands. */
export class Operator {
  readonly #environment: Record<string, string>;

  /** @param settings override the service's. */
  constructor(service: Service, settings: Record<string, string> = {}) {
    this.#environment = {
      DATABASE_URL: service.processDatabaseUrl,
      REDIS_URL: service.redisServer.url,
      SERP_PROVIDERS: "sandbox",
      ...settings,
    };
  }

  /** Runs a command in this process. */
  try(...args: string[]): Promise<CommandResult> {
    return runAdminHere(args, this.#environment);
  }

  /** Runs a command at a terminal that is or does this. */
  tryAtTerminal(own: Partial<Terminal>, ...args: string[]): Promise<CommandResult> {
    return runAdminHere(args, this.#environment, own);
  }

  /** Runs a command in a separate process, as an operator does. */
  tryAsProcess(...args: string[]): Promise<CommandResult> {
    return run("commands/main.ts", args, this.#environment);
  }

  /**
   * Runs a command in a separate process that is killed when it is about to send this to Postgres or Redis.
   * @returns the signal that ended it; null if it ended by itself.
   */
  async killBefore(sent: string, ...args: string[]): Promise<NodeJS.Signals | null> {
    const preload = new URL("./die-before.ts", import.meta.url);
    preload.searchParams.set("before", sent);
    const child = spawn(process.execPath, ["--import", preload.href, "commands/main.ts", ...args], {
      cwd: root,
      env: { ...codeLoading, ...this.#environment },
      stdio: "ignore",
    });
    await once(child, "exit");
    return child.signalCode;
  }

  /** Runs a command that succeeds and writes nothing to stderr. @returns its one line of JSON. */
  async run(...args: string[]): Promise<unknown> {
    const { exitCode, stdout, stderr } = await this.try(...args);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    return readLine(stdout);
  }

  /** Creates an organization with the command. */
  async create(plan: string, ...options: string[]) {
    return created.parse(await this.run("org", "create", "--name", "Acme", "--plan", plan, ...options));
  }
}

const created = z.strictObject({
  orgId: z.string().regex(/^org_[0-7][0-9a-z]{25}$/),
  token: z.string().regex(/^smk_[a-z0-9]{39}$/),
  tokenId: z.string().regex(/^tok_[0-7][0-9a-z]{25}$/),
  plan: z.string(),
  creditBalanceMils: z.int(),
});
