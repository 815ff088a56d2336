import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { readSource } from "./harness/assertions/sources.ts";

/** deploy/upgrade.sh with a substitute for docker that records its arguments; and the proxy of docker compose. */

// Each service has two old containers, two new ones once they are started, and a command that an operator runs.
const docker = `#!/bin/sh
cd "$(dirname "$0")"
echo "$@" >> said
[ "$*" != "$(cat interrupted)" ] || kill -INT "$PPID"
case "$*" in
  "compose ps --quiet worker"|"compose ps --quiet api") echo "$4-1"; echo "$4-2" ;;
  "compose ps --all --quiet "*) echo "$5-1"; echo "$5-2"; echo "$5-3"; echo "$5-4"; echo "$5-command" ;;
  "compose up "*) case "$*" in *" $(cat sick)") exit 1 ;; esac ;;
  inspect*-command) echo True ;;
  inspect*oneoff*) echo False ;;
  inspect*) echo sha256:old ;;
esac
`;

async function upgrade(
  mode: string[],
  { sick = "none", interrupted = "" } = {},
): Promise<{ exitCode: unknown; said: string[] }> {
  const folder = await mkdtemp(join(tmpdir(), "serpmill-upgrade-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  await mkdir(join(folder, "deploy"));
  await cp("deploy/upgrade.sh", join(folder, "deploy/upgrade.sh"));
  await writeFile(join(folder, "docker"), docker, { mode: 0o755 });
  await writeFile(join(folder, "sick"), sick);
  await writeFile(join(folder, "interrupted"), interrupted);
  const env = { PATH: `${folder}:/usr/bin:/bin`, SETTLE_SECONDS: "0" };
  const exitCode = await new Promise((resolve) => {
    execFile("/bin/sh", [join(folder, "deploy/upgrade.sh"), ...mode], { env }, (error) => resolve(error?.code ?? 0));
  });
  const said = (await readFile(join(folder, "said"), "utf8").catch(() => "")).trim().split("\n");
  return { exitCode, said: said.filter((line) => !/^$|^compose (ps|logs)|^inspect/.test(line)) };
}

const replaced = (service: string) => [
  `compose up --detach --wait --no-deps --no-recreate --scale ${service}=4 ${service}`,
  ...["1", "2"].flatMap((n) => [`stop ${service}-${n}`, `rm ${service}-${n}`]),
];
const prepared = ["image tag sha256:old serpmill:previous", "compose build", "compose run --rm --no-deps migrate"];

test("an upgrade migrates, then replaces the workers, then the APIs, and stops old processes only once new ones are healthy", async () => {
  const { exitCode, said } = await upgrade([]);
  expect(said).toEqual([...prepared, ...replaced("worker"), ...replaced("api")]);
  expect(exitCode).toBe(0);
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
  expect(await upgrade(["roll-back"])).toEqual({ exitCode: 2, said: [] });
});

test("an upgrade whose new API is not healthy removes the new APIs and stops no old one", async () => {
  const { exitCode, said } = await upgrade([], { sick: "api" });
  const [begun = ""] = replaced("api");
  expect(said).toEqual([...prepared, ...replaced("worker"), begun, "rm --force api-3", "rm --force api-4"]);
  expect(exitCode).toBe(1);
});

test("an upgrade that is interrupted before the new worker is healthy removes the new workers and stops no old one", async () => {
  const [begun = ""] = replaced("worker");
  const { exitCode, said } = await upgrade([], { interrupted: begun });
  expect(said).toEqual([...prepared, begun, "rm --force worker-3", "rm --force worker-4"]);
  expect(exitCode).toBe(130);
});

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
