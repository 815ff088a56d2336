import { execFile, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { errorBodySchemas } from "../api/error-schemas.ts";
import { helpLinkOf } from "../api/http/send-error.ts";
import { type GuardedProcess, startGuardedProcess } from "../local/guarded-process.ts";
import { claimPort, freePort } from "../local/ports.ts";
import { protocolTimes } from "../shared/protocol-times.ts";
import { readSource, sources } from "./harness/assertions/sources.ts";
import { GuardedFolder } from "./harness/processes/guarded-folder.ts";
import { Service } from "./harness/processes/service.ts";
import { startHaproxy, withoutHaproxy } from "./harness/servers/haproxy.ts";

/** deploy/systemd and deploy/proxy/haproxy-static.cfg: an installation without containers. */

const checkout = fileURLToPath(new URL("../", import.meta.url));
const systemdAnalyze = "/usr/bin/systemd-analyze"; // Where Debian has it.
const withoutSystemd = existsSync(systemdAnalyze) ? "" : ` (skipped: no ${systemdAnalyze})`;
/** A limit of `systemd-analyze security`, which counts tenths: 10 to 20 is "OK". */
const exposureMax = "15";

/** Before a command, so that root runs it as a user that owns no file; nothing where such a user cannot read this checkout. */
const setUser = ["--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"];
const readsCheckout = [...setUser, join(checkout, "node_modules/.bin/node"), "--check", join(checkout, "api/main.ts")];
const asPlainUser = spawnSync("/usr/bin/setpriv", readsCheckout).status === 0 ? ["/usr/bin/setpriv", ...setUser] : [];

type Unit = "serpmill-api@" | "serpmill-worker@" | "serpmill-migrate";
const units: readonly Unit[] = ["serpmill-api@", "serpmill-worker@", "serpmill-migrate"];
const textOf = (unit: Unit) => readSource(`deploy/systemd/${unit}.service`);

/** All values of a key of a unit. */
const valuesOf = (unit: Unit, key: string) =>
  [...textOf(unit).matchAll(new RegExp(`^${key}=(.*)$`, "gm"))].map(([, value = ""]) => value);

test("systemd gives a process as long to stop as the highest deadline may take", () => {
  const documentedSeconds = protocolTimes.searchDeadlineMaxMs / 1_000 + 20;
  for (const unit of ["serpmill-api@", "serpmill-worker@"] as const)
    expect(Number(valuesOf(unit, "TimeoutStopSec")[0])).toBeGreaterThan(documentedSeconds);
});

test("systemd starts an API or a worker again however often it fails", () => {
  for (const unit of ["serpmill-api@", "serpmill-worker@"] as const)
    expect([valuesOf(unit, "Restart"), valuesOf(unit, "StartLimitIntervalSec")]).toEqual([["on-failure"], ["0"]]);
});

test("each program reads only its own file of secrets", () => {
  expect(units.map((unit) => valuesOf(unit, "EnvironmentFile"))).toEqual(
    ["api", "worker", "migrate"].map((own) => ["/etc/serpmill/serpmill.env", `/etc/serpmill/${own}.env`]),
  );
});

test.skipIf(withoutSystemd !== "")(
  `systemd accepts every unit, and counts little that its process could do${withoutSystemd}`,
  async () => {
    const folder = await GuardedFolder.create("serpmill-units-");
    onTestFinished(() => folder.remove());
    await cp("deploy/systemd", folder.path, { recursive: true });
    const paths = units.map((unit) => join(folder.path, `${unit}.service`));
    const analyze = (...args: string[]) => promisify(execFile)(systemdAnalyze, args);
    expect(await analyze("verify", "--man=no", ...paths)).toEqual({ stdout: "", stderr: "" });
    for (const path of paths)
      await analyze("security", "--no-pager", "--offline=true", `--threshold=${exposureMax}`, path);
  },
);

test("the proxy for fixed addresses differs from that of docker compose only in how it finds APIs and in its user", () => {
  const [fixed, compose] = ["haproxy-static", "haproxy"].map((name) => {
    const lines = readSource(`deploy/proxy/${name}.cfg`).split(/^backend ready$/m)[0] ?? "";
    const ofContainers = lines
      .replaceAll("TRUSTED_PROXIES", "PROXIES_IN_FRONT")
      .replace(/^ {2}(user|group) haproxy\n/gm, "");
    return ofContainers.replace(/^#.*\n/gm, "").replace(/^resolvers .*?\n\n/ms, "");
  });
  expect(fixed).toBe(compose);
});

describe.skipIf(withoutHaproxy !== "")(`behind HAProxy${withoutHaproxy}`, () => {
  /** An instance whose three ports are free. */
  async function freeInstance(): Promise<string> {
    for (let instance = 40; instance < 100; instance += 1) {
      const ports = [30, 31, 32].map((series) => series * 100 + instance);
      const claimed = await Promise.all(ports.map((port) => claimPort(port, "127.0.0.1")));
      if (claimed.every((port, at) => port === ports[at])) return String(instance);
    }
    throw new Error("no instance has three free ports");
  }

  /** A service without processes of its own, whose settings are in the files of the units. */
  async function install() {
    const folder = await GuardedFolder.create("serpmill-by-hand-");
    onTestFinished(() => folder.remove());
    const service = await Service.start({ apis: 0, workers: 0, end: onTestFinished });
    const { processDatabaseUrl, databaseUrl, redisServer } = service;
    const files = {
      serpmill: `DATABASE_URL=${processDatabaseUrl}\nSERP_PROVIDERS=sandbox\nAPI_PORT=1\nTRUSTED_PROXIES=1\n`,
      api: `REDIS_URL=${redisServer.url}\n`,
      worker: `REDIS_URL=${redisServer.url}\n`,
      migrate: `MIGRATION_DATABASE_URL=${databaseUrl}\n`,
    };
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder.path, `${name}.env`), text);
    return { service, folder: folder.path };
  }

  /**
   * Runs the line of a unit as systemd does: its folder, its files, its instance, and nothing else from here; under root as a user
   * that owns no file, as with DynamicUser.
   */
  async function start(unit: Unit, folder: string, instance = ""): Promise<GuardedProcess> {
    expect(valuesOf(unit, "WorkingDirectory")).toEqual(["/opt/serpmill"]);
    const paths = valuesOf(unit, "EnvironmentFile").map((path) => path.replace("/etc/serpmill", folder));
    const settings = await Promise.all(paths.map((path) => readFile(path, "utf8")));
    const env = Object.fromEntries(
      settings.flatMap((text) =>
        text
          .trim()
          .split("\n")
          .map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
      ),
    );
    const command = (valuesOf(unit, "ExecStart")[0] ?? "").replaceAll("%i", instance);
    const words = (command.match(/"[^"]*"|\S+/g) ?? []).map((word) => word.replaceAll('"', ""));
    const [program = "", ...args] = [...asPlainUser, ...words];
    const started = await startGuardedProcess(program, args, { cwd: checkout, env, stdio: "ignore" });
    onTestFinished(() => started.stop());
    return started;
  }

  async function startProxy(instance: string): Promise<string> {
    const port = await freePort();
    const proxy = await startHaproxy({
      config: "deploy/proxy/haproxy-static.cfg",
      // The second API of the list never runs.
      changes: { "bind :3000": `bind 127.0.0.1:${port}`, "3001 port 3101": `30${instance} port 31${instance}` },
    });
    onTestFinished(() => proxy.stop());
    return `http://127.0.0.1:${port}`;
  }

  test("callers always get JSON: from the proxy while no API runs, from an API that is not ready, and then their answers", async () => {
    const { service, folder } = await install();
    const { token } = await service.organization();
    const instance = await freeInstance();
    const url = await startProxy(instance);
    const search = async () => {
      const response = await fetch(`${url}/v1/serp/search`, {
        method: "POST",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        body: JSON.stringify({ keyword: "by hand" }),
      });
      return { status: response.status, headers: response.headers, body: JSON.parse(await response.text()) };
    };
    const until = (isTrue: (answer: Awaited<ReturnType<typeof search>>) => boolean) =>
      service.until(async () => isTrue(await search()));

    await until(({ status }) => status === 503);
    const without = await search();
    expect(errorBodySchemas[503].parse(without.body).error.details.reason).toBe("shutting_down");
    expect(without.headers.get("x-request-id")).toBe(without.body.requestId);
    expect(without.headers.get("retry-after")).toBe("1");
    expect(without.headers.get("link")).toBe(helpLinkOf("unavailable"));

    expect(await (await start("serpmill-migrate", folder)).exited).toBe("exit code 0");
    const api = await start("serpmill-api@", folder, instance);
    await until(({ body }) => body.error?.details.reason === "no_workers");
    await start("serpmill-worker@", folder, instance);
    await until(({ status }) => status === 200);
    await api.stop();
    expect(await api.exited).toBe("exit code 0");
  });
});

test("the units are all that the folder has", () => {
  expect(sources("deploy/systemd/*").map(({ path }) => path)).toEqual(
    units.map((unit) => `deploy/systemd/${unit}.service`).toSorted(),
  );
});
