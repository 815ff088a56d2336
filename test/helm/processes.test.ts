import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { type GuardedProcess, startGuardedProcess } from "../../local/guarded-process.ts";
import { freePort } from "../../local/ports.ts";
import { openMetrics } from "../../shared/metrics.ts";
import { Exposition } from "../harness/assertions/metrics.ts";
import { faultsOf, seriesOf } from "../harness/assertions/promql.ts";
import { readSource } from "../harness/assertions/sources.ts";
import { GuardedFolder } from "../harness/processes/guarded-folder.ts";
import { Service } from "../harness/processes/service.ts";
import { createAuthority, startBehindTls } from "../harness/servers/behind-tls.ts";
import { type KubernetesObject, podOf, render, withoutHelm } from "./helm.ts";

/** The containers of the chart as processes: with their commands, environments, files and probes. */

const checkout = fileURLToPath(new URL("../../", import.meta.url));

describe.skipIf(withoutHelm !== "")(`what the chart starts${withoutHelm}`, () => {
  /** Stores, and the Secret that the values name. */
  async function install() {
    const folder = await GuardedFolder.create("serpmill-pods-");
    onTestFinished(() => folder.remove());
    const service = await Service.start({ apis: 0, workers: 0, end: onTestFinished });
    const secret: Record<string, string> = {
      DATABASE_URL: service.processDatabaseUrl,
      MIGRATION_DATABASE_URL: service.databaseUrl,
      REDIS_URL_API: service.redisServer.url,
      REDIS_URL_WORKER: service.redisServer.url,
      SERPER_API_KEY: "key-of-the-secret",
    };
    return { folder: folder.path, service, secret };
  }
  type Installation = Awaited<ReturnType<typeof install>>;

  const portNames = { API_PORT: "http", API_OPS_PORT: "ops", WORKER_OPS_PORT: "ops" } as const;

  /** A pod: its files, and its container as a process on an address of its own, with free ports. */
  async function start(objects: readonly KubernetesObject[], component: string, to: Installation, address: string) {
    const { container, volumes } = podOf(objects, component);
    const files = join(to.folder, component);
    await mkdir(files, { recursive: true });
    for (const { key, path } of volumes.flatMap(({ secret }) => secret?.items ?? []))
      await writeFile(join(files, path), to.secret[key] ?? "");
    const declared = new Map(container.ports.map(({ name, containerPort }) => [name, containerPort]));
    const env = Object.fromEntries(container.env.map(({ name, value }) => [name, value]));
    const ports: Record<string, number> = {};
    for (const [setting, name] of Object.entries(portNames)) {
      if (env[setting] === undefined) continue;
      expect(Number(env[setting])).toBe(declared.get(name));
      ports[name] = await freePort();
      env[setting] = String(ports[name]);
    }
    if (env["HOST"] !== undefined) env["HOST"] = address;
    for (const [name, value] of Object.entries(env))
      env[name] = value.replace("/run/secrets/serpmill", files).replace("/etc/serpmill/ca", to.folder);
    const [, ...args] = container.command ?? [];
    const started = await startGuardedProcess(process.execPath, args, { cwd: checkout, env, stdio: "ignore" });
    onTestFinished(() => started.stop());
    return { ...started, container, opsUrl: `http://${address}:${ports["ops"]}` };
  }

  const stop = async (pod: GuardedProcess) => {
    await pod.stop();
    expect(await pod.exited).toBe("exit code 0");
  };

  const httpGet = z.object({ httpGet: z.object({ path: z.string(), port: z.literal("ops") }) });
  const probesOf = ({ container }: Awaited<ReturnType<typeof start>>) =>
    ["startupProbe", "livenessProbe", "readinessProbe"].map((name) => httpGet.parse(container[name]).httpGet.path);

  test("the migration's pod reaches its database and ends with 0, and a worker's pod gets its provider's key", async () => {
    const installed = await install();
    const objects = await render("minimal");
    const migration = await start(objects, "migrate", installed, "127.0.9.3");
    expect(await migration.exited).toBe("exit code 0");
    const worker = await start(objects, "worker", installed, "127.0.9.4");
    await installed.service.until(async () => (await fetch(`${worker.opsUrl}/readyz`)).ok);
    await stop(worker);
  });

  test("pods answer their probes, and trust the certificate authority that the values name, at Postgres and at Redis, and no other", async () => {
    const installed = await install();
    const { service, folder, secret } = installed;
    const authority = await createAuthority(folder);
    const urls = Object.entries(secret).filter(([, value]) => URL.canParse(value));
    for (const [key, value] of urls) {
      const url = new URL(value);
      const isPostgres = url.protocol.startsWith("postgres");
      const server = await startBehindTls(authority, { host: url.hostname, port: Number(url.port) }, isPostgres);
      onTestFinished(() => server.stop());
      url.host = `localhost:${server.port}`;
      if (isPostgres) url.searchParams.set("sslmode", "verify-full");
      secret[key] = isPostgres ? url.href : url.href.replace("redis:", "rediss:");
    }
    const stranger = await render("minimal");
    expect(await (await start(stranger, "migrate", installed, "127.0.9.5")).exited).toBe("exit code 1");
    const objects = await render("minimal", 'settings.SERP_PROVIDERS="sandbox"', 'ca.existingConfigMap="store-ca"');
    expect(await (await start(objects, "migrate", installed, "127.0.9.5")).exited).toBe("exit code 0");
    for (const component of ["worker", "api"]) {
      const pod = await start(objects, component, installed, "127.0.9.6");
      for (const path of probesOf(pod)) await service.until(async () => (await fetch(pod.opsUrl + path)).ok);
      await stop(pod);
    }
  });

  const scaledObject = z.object({
    spec: z.object({ triggers: z.tuple([z.object({ metadata: z.object({ query: z.string() }) })]) }),
  });

  test("KEDA and the rules ask for metrics that a running API and worker export", async () => {
    const service = await Service.start();
    onTestFinished(() => service.stop());
    const [api, worker] = [service.apis[0], service.workers[0]];
    if (api === undefined || worker === undefined) throw new Error("both were started");
    const everything = await render("everything");
    const { query } = scaledObject.parse(everything.find(({ kind }) => kind === "ScaledObject")).spec.triggers[0]
      .metadata;
    const { registry } = openMetrics();
    const known = seriesOf(registry, { up: [] });
    for (const labels of known.values()) for (const added of ["namespace", "service"]) labels.add(added);
    expect(faultsOf(query, known)).toEqual([]);

    // Each is absent until it is measured, and then it is on the Service that the query names.
    const asked = [...query.matchAll(/(\w+)\{namespace="search",service="serpmill-(api|worker)"\}\[1m\]/g)];
    expect(asked.map(([, name, job]) => `${name} of ${job}`)).toEqual([
      "queue_depth of api",
      "worker_slots_taken of worker",
      "worker_slots of worker",
    ]);
    for (const [, name = "", job] of asked)
      await service.until(async () => (await Exposition.of(job === "api" ? api : worker)).value(name) !== undefined);

    const exported = new Set(
      (await Promise.all([api, worker].map((process) => Exposition.of(process)))).flatMap((one) => one.names()),
    );
    const rules = readSource("deploy/prometheus/alerts.yml") + readSource("deploy/prometheus/objectives.yml");
    const named = registry
      .getMetricsAsArray()
      .map(({ name }) => name)
      .filter((name) => rules.includes(name));
    expect(named.length).toBeGreaterThan(20);
    expect(named.filter((name) => !exported.has(name))).toEqual([]);
  });
});
