import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { readSource } from "./harness/assertions/sources.ts";

/** deploy/upgrade.sh with substitutes for docker, which records its arguments, and for sleep; and the proxy of docker compose. */

// A file for each container holds its state. Like compose, `up` first starts containers that stopped, which are still of the old image.
const docker = `#!/bin/sh
cd "$(dirname "$0")/containers"
echo "$@" >> ../said
[ "$*" != "$(cat ../interrupted)" ] || kill -INT "$PPID"
case "$*" in
  "compose ps --quiet "*) grep -L -e exited -e command "$4"-* ;;
  "compose ps --all --quiet "*) ls "$5"-* ;;
  "compose rm --force "*) rm -f $(grep -l exited "$4"-*) ;;
  "compose up "*)
    for service; do :; done
    for stopped in $(grep -l exited "$service"-*); do echo starting > "$stopped"; done
    for number in 3 4; do
      case "$*" in *"=$(ls "$service"-? | wc -l) "*) break ;; esac
      echo starting > "$service-$number"
    done ;;
  inspect*-command) echo True ;;
  inspect*oneoff*) echo False ;;
  inspect*Health*) shift 3; cat "$@" ;;
  inspect*) echo sha256:old ;;
  stop*) echo exited > "$2" ;;
  logs*) echo "log of $2, $(cat "$2")"; echo "errors of $2" >&2 ;;
  "rm --force "*) rm "$3" ;;
  rm*) rm "$2" ;;
esac
`;
const sleep = `#!/bin/sh
cd "$(dirname "$0")/containers"
for container in $(grep -l starting *); do cp "../\${container%-*}-becomes" "$container"; done
`;

/** Upgrades two workers and two APIs, beside a command that an operator runs. */
async function upgrade(
  mode: string[],
  { old = {}, becomes = {}, interrupted = "" }: { old?: object; becomes?: object; interrupted?: string } = {},
): Promise<{ exitCode: unknown; said: string[]; left: string[]; logs: Record<string, string> }> {
  const folder = await mkdtemp(join(tmpdir(), "serpmill-upgrade-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  await mkdir(join(folder, "deploy"));
  await mkdir(join(folder, "containers"));
  await cp("deploy/upgrade.sh", join(folder, "deploy/upgrade.sh"));
  await writeFile(join(folder, "docker"), docker, { mode: 0o755 });
  await writeFile(join(folder, "sleep"), sleep, { mode: 0o755 });
  await writeFile(join(folder, "interrupted"), interrupted);
  for (const service of ["worker", "api"]) {
    const states = { [`${service}-1`]: "healthy", [`${service}-2`]: "healthy", [`${service}-command`]: "command" };
    for (const [name, state] of Object.entries(states)) await writeFile(join(folder, "containers", name), `${state}\n`);
    await writeFile(join(folder, `${service}-becomes`), "healthy\n");
  }
  for (const [name, state] of Object.entries(old)) await writeFile(join(folder, "containers", name), `${state}\n`);
  for (const [name, state] of Object.entries(becomes)) await writeFile(join(folder, `${name}-becomes`), `${state}\n`);
  const env = { PATH: `${folder}:/usr/bin:/bin` };
  const exitCode = await new Promise((resolve) => {
    execFile("/bin/sh", [join(folder, "deploy/upgrade.sh"), ...mode], { env }, (error) => resolve(error?.code ?? 0));
  });
  const said = (await readFile(join(folder, "said"), "utf8").catch(() => "")).trim().split("\n");
  const left = (await readdir(join(folder, "containers"))).filter((name) => !name.endsWith("command"));
  const logs: Record<string, string> = {};
  for (const name of await readdir(join(folder, "logs")).catch(() => []))
    logs[name.replace(/\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ/, "TIME")] = gunzipSync(
      await readFile(join(folder, "logs", name)),
    ).toString();
  return { exitCode, said: said.filter((line) => !/^$|^compose (ps|logs|rm)|^inspect/.test(line)), left, logs };
}

const up = (service: string, count = 4) =>
  `compose up --detach --no-deps --no-recreate --scale ${service}=${count} ${service}`;
const removed = (container: string) => [`stop ${container}`, `logs ${container}`, `rm ${container}`];
const replaced = (service: string) => [up(service), ...["1", "2"].flatMap((n) => removed(`${service}-${n}`))];
const allNew = ["api-3", "api-4", "worker-3", "worker-4"];
const prepared = ["image tag sha256:old serpmill:previous", "compose build", "compose run --rm --no-deps migrate"];

test("an upgrade migrates, then replaces the workers, then the APIs, and stops old processes only once new ones are healthy", async () => {
  const { exitCode, said, left } = await upgrade([]);
  expect(said).toEqual([...prepared, ...replaced("worker"), ...replaced("api")]);
  expect(left).toEqual(allNew);
  expect(exitCode).toBe(0);
});

test("the logs of the old containers are kept until their last line", async () => {
  const { logs } = await upgrade(["restart"]);
  const old = ["api-1", "api-2", "worker-1", "worker-2"];
  const log = (container: string) => `log of ${container}, exited\nerrors of ${container}\n`;
  expect(logs).toEqual(Object.fromEntries(old.map((one) => [`${one.slice(0, -2)}-TIME-${one}.gz`, log(one)])));
});

test("an upgrade whose disk has no room for the logs replaces everything all the same", async () => {
  const { exitCode, said, logs } = await upgrade(["restart"], { old: { "../logs": "a file" } });
  expect(said).toEqual([...replaced("worker"), ...replaced("api")].filter((line) => !line.startsWith("logs")));
  expect({ exitCode, logs }).toEqual({ exitCode: 0, logs: {} });
});

test("a rollback replaces the APIs, then the workers, with the previous image, and runs no migration", async () => {
  const { exitCode, said } = await upgrade(["rollback"]);
  expect(said).toEqual(["image tag serpmill:previous serpmill", ...replaced("api"), ...replaced("worker")]);
  expect(exitCode).toBe(0);
});

test("a restart replaces the workers, then the APIs, which read changed settings, and leaves the image to roll back to", async () => {
  const { exitCode, said } = await upgrade(["restart"]);
  expect(said).toEqual([...replaced("worker"), ...replaced("api")]);
  expect(exitCode).toBe(0);
});

test("a word that is none of its own changes nothing", async () => {
  expect(await upgrade(["roll-back"])).toMatchObject({ exitCode: 2, said: [] });
});

test("a restart replaces an old worker that is not healthy, and an API that was stopped", async () => {
  const { exitCode, said, left } = await upgrade(["restart"], { old: { "worker-1": "unhealthy", "api-1": "exited" } });
  expect(said).toEqual([...replaced("worker"), up("api", 2), ...removed("api-2")]);
  expect(left).toEqual(["api-3", "worker-3", "worker-4"]);
  expect(exitCode).toBe(0);
});

test.each(["unhealthy", "starting"])(
  "an upgrade whose new API stays %s removes the new APIs and stops no old one",
  async (state) => {
    const { exitCode, said } = await upgrade([], { becomes: { api: state } });
    expect(said).toEqual([...prepared, ...replaced("worker"), up("api"), "rm --force api-3", "rm --force api-4"]);
    expect(exitCode).toBe(1);
  },
);

test.each([up("worker"), "inspect --format {{.State.Health.Status}} worker-3 worker-4"])(
  "an upgrade that is interrupted before the new worker is healthy removes the new workers and stops no old one (%s)",
  async (interrupted) => {
    const { exitCode, said } = await upgrade([], { interrupted });
    expect(said).toEqual([...prepared, up("worker"), "rm --force worker-3", "rm --force worker-4"]);
    expect(exitCode).toBe(130);
  },
);

test("an upgrade that is interrupted while it stops old workers stops all of them", async () => {
  const { said } = await upgrade([], { interrupted: "stop worker-1" });
  expect(said).toEqual([...prepared, ...replaced("worker"), ...replaced("api")]);
});

const composeFile = z.object({
  services: z.object({
    worker: z.object({ scale: z.string() }),
    api: z.object({
      scale: z.string(),
      ports: z.undefined().optional(),
      environment: z.record(z.string(), z.string()),
    }),
    proxy: z.object({
      networks: z.array(z.string()),
      ports: z.array(z.string()),
      cap_drop: z.array(z.string()),
      read_only: z.literal(true),
      user: z.string(),
      environment: z.undefined().optional(),
    }),
  }),
});

test("the numbers of APIs and of workers are settings, so that no later `up` removes some", () => {
  const { api, worker } = composeFile.parse(parse(readSource("docker-compose.yml"), { merge: true })).services;
  expect([api.scale, worker.scale]).toEqual(["${APIS:-2}", "${WORKERS:-1}"]);
});

test("callers reach two APIs only through the proxy, which cannot reach the data and whose addresses the APIs trust", () => {
  const { api, proxy } = composeFile.parse(parse(readSource("docker-compose.yml"), { merge: true })).services;
  expect(api.environment).toMatchObject({ TRUSTED_PROXIES: "${PROXIES_IN_FRONT:-1}", API_OPS_PORT: "3001" });
  expect(proxy).toMatchObject({ networks: ["ops", "edge"], cap_drop: ["ALL"], user: "99:99" });
  expect(proxy.ports).toEqual(["127.0.0.1:${API_PORT:-3000}:3000"]);
});

test.each(["haproxy", "postgres", "redis"])("while no name server answers, servers stay up behind %s.cfg", (name) => {
  const text = readSource(`deploy/proxy/${name}.cfg`);
  for (const failure of ["timeout", "refused", "other"]) expect(text).toContain(`\n  hold ${failure} 20d\n`);
});
