import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { providerSecrets } from "../shared/config/secret-settings.ts";
import { readSource } from "./harness/assertions/sources.ts";
import { GuardedFolder } from "./harness/processes/guarded-folder.ts";
import { run } from "./harness/processes/run.ts";
import { type Api, Service, type Worker } from "./harness/processes/service.ts";

/** deploy/quick.yml: Serpmill to try out, in containers with little memory. */

const megabytes = z
  .string()
  .regex(/^\d+m$/)
  .transform((text) => Number(text.slice(0, -1)));
const service = z.object({
  image: z.string(),
  command: z.array(z.string()).optional(),
  read_only: z.literal(true),
  cap_drop: z.tuple([z.literal("ALL")]),
  networks: z.array(z.string()),
  ports: z.array(z.string()).default([]),
  mem_limit: megabytes,
  environment: z.record(z.string(), z.string()).default({}),
});
const { services } = z
  .object({ services: z.record(z.string(), service) })
  .parse(parse(readSource("deploy/quick.yml"), { merge: true }));
const { api, worker, welcome, migrate } = z
  .object({ api: service.loose(), worker: service.loose(), welcome: service.loose(), migrate: service.loose() })
  .parse(parse(readSource("deploy/quick.yml"), { merge: true }).services);

test("all containers together may use 1 GB, and only callers on this machine reach one of them", () => {
  const limits = Object.values(services).map(({ mem_limit }) => mem_limit);
  expect(limits.reduce((sum, limit) => sum + limit, 0)).toBeLessThanOrEqual(1_024);
  expect(Object.entries(services).flatMap(([name, { ports }]) => ports.map((port) => `${name} ${port}`))).toEqual([
    "api 127.0.0.1:3000:3000",
  ]);
  for (const name of ["postgres", "redis", "migrate"]) expect(services[name]?.networks).toEqual(["data"]);
});

test("Redis answers other containers although it has no password, from any image and not only one that has changed this default", () => {
  expect(services["redis"]?.command?.join(" ")).toContain(" --protected-mode no ");
});

test("answers are made up unless the shell names providers, whose keys only the worker gets", () => {
  for (const { environment } of [api, worker]) expect(environment["SERP_PROVIDERS"]).toBe("${SERP_PROVIDERS:-sandbox}");
  const keys: ReadonlySet<string> = new Set(providerSecrets);
  const keysOf = ({ environment }: typeof api) => Object.keys(environment).filter((name) => keys.has(name));
  expect([api, welcome, migrate].flatMap(keysOf)).toEqual([]);
  expect(new Set(keysOf(worker))).toEqual(keys);
});

/** The most memory that a process has used so far, its program included. */
function peakMegabytes({ child: { pid } }: Api | Worker): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) / 1_024;
}

test("it prints what npm start prints, the line of curl works, and API and worker stay within their memory", async () => {
  const [folder, started] = await Promise.all([
    GuardedFolder.create("serpmill-quick-"),
    Service.start({ apis: 0, workers: 0 }),
  ]);
  onTestFinished(async () => {
    await started.stop();
    folder.remove();
  });
  const heap = { NODE_OPTIONS: api.environment["NODE_OPTIONS"] ?? "" };
  const runningWorker = await started.startWorker(heap);
  const runningApi = await started.startApi(heap);

  const tokenFile = join(folder.path, "token");
  const addresses = { "--api": runningApi.url, "--ops": runningApi.opsUrl, "--callers": runningApi.url };
  const args = Object.entries({ ...addresses, "--token-file": tokenFile }).flat();
  const env = {
    DATABASE_URL: started.processDatabaseUrl,
    REDIS_URL: started.redisServer.url,
    SERP_PROVIDERS: "sandbox",
    ...heap,
  };
  const program = "local/welcome.ts";
  expect(welcome.command).toEqual(["node", program]);
  const print = async () => {
    const { exitCode, stdout, stderr } = await run(program, args, env);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    return stdout;
  };

  const text = await print();
  const token = (await readFile(tokenFile, "utf8")).trim();
  expect(text).toContain(`Serpmill is running\n  API         ${runningApi.url}\n  Token       ${token}\n`);
  const [, curl = ""] = /^Run a search:\n([\s\S]*?)\n\n/m.exec(text) ?? [];
  expect(JSON.parse((await promisify(execFile)("/bin/sh", ["-c", curl])).stdout)).toMatchObject({ creditsCharged: 5 });
  expect(await print()).toContain("reused from the last start");

  const { token: busy } = await started.organization({ creditMils: 1_000_000 });
  const search = (keyword: number) => started.search(busy, { keyword: String(keyword), depth: 100 });
  for (let round = 0; round < 8; round += 1)
    await Promise.all(Array.from({ length: 50 }, (_, at) => search(50 * round + at)));
  expect(peakMegabytes(runningApi)).toBeLessThan(api.mem_limit);
  expect(peakMegabytes(runningWorker)).toBeLessThan(worker.mem_limit);
});
