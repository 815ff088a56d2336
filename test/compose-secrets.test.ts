import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { readConfig, readMigrationConfig } from "../shared/config.ts";
import { providerSecrets } from "../shared/config/secret-settings.ts";
import { readSource } from "./harness/assertions/sources.ts";

/** The secrets of docker compose: files, of which each container gets those that it needs, and no value in an environment. */

const composeFile = z.object({
  services: z.record(
    z.string(),
    z.object({
      networks: z.array(z.string()),
      environment: z.record(z.string(), z.string()).default({}),
      secrets: z.array(z.string()).default([]),
    }),
  ),
  secrets: z.record(z.string(), z.object({ file: z.string() })),
});
const compose = composeFile.parse(parse(readSource("docker-compose.yml"), { merge: true }));
const { services } = compose;
const environmentOf = (name: string) => services[name]?.environment ?? {};

const providerKeys: readonly string[] = providerSecrets;
const stripeKeys = ["STRIPE_SECRET_KEY", "STRIPE_WEBHOOK_SECRET"];

test("an API has no way out unless its operator asks for one", () => {
  expect(services["api"]?.networks).toEqual(["data", "ops", "${API_NETWORK:-edge}"]);
});

test("each container gets only the secrets that it needs", () => {
  const given = Object.entries(services).map(([name, { secrets }]) => [name, secrets.toSorted()]);
  expect(Object.fromEntries(given)).toMatchObject({
    api: ["DATABASE_URL", "OTEL_EXPORTER_OTLP_HEADERS", "REDIS_URL_API", ...stripeKeys],
    worker: ["DATABASE_URL", "OTEL_EXPORTER_OTLP_HEADERS", "REDIS_URL_WORKER", ...providerKeys].toSorted(),
    migrate: ["DATABASE_URL", "MIGRATION_DATABASE_URL"],
    postgres: ["MIGRATION_DATABASE_URL"],
    redis: ["REDIS_API_PASSWORD", "REDIS_WORKER_PASSWORD"],
  });
});

test("no environment in the compose file has a secret, and every file that one names is mounted", () => {
  for (const [name, { environment, secrets }] of Object.entries(services)) {
    const values = Object.entries(environment).filter(([key]) => /(KEY|SECRET|PASSWORD|LOGIN|HEADERS|_URL)$/.test(key));
    expect({ name, values: values.filter(([, value]) => value !== "") }).toEqual({ name, values: [] });
    const files = Object.values(environment).flatMap((value) => /^\/run\/secrets\/(.+)$/.exec(value)?.[1] ?? []);
    expect({ name, missing: files.filter((file) => !secrets.includes(file)) }).toEqual({ name, missing: [] });
  }
  expect(readSource("docker-compose.yml")).not.toMatch(/:\/\/[\w-]*:[^/]*@/);
});

/** What .env may have reaches each container of ours unless the compose file overrides it. */
test("an API gets no key of a provider, and a worker none of Stripe, whatever .env has", () => {
  const overridden = (names: readonly string[]) =>
    Object.fromEntries(names.flatMap((name) => [name, `${name}_FILE`]).map((name) => [name, ""]));
  expect(environmentOf("api")).toMatchObject(overridden(["MIGRATION_DATABASE_URL", ...providerKeys]));
  expect(environmentOf("worker")).toMatchObject(overridden(["MIGRATION_DATABASE_URL", ...stripeKeys]));
});

async function checkoutWith(env?: string) {
  const folder = await mkdtemp(join(tmpdir(), "serpmill-passwords-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  await mkdir(join(folder, "deploy"));
  await cp("deploy/passwords.sh", join(folder, "deploy/passwords.sh"));
  await cp(".env.example", join(folder, ".env.example"));
  if (env !== undefined) await writeFile(join(folder, ".env"), env);
  const secrets = join(folder, "secrets");
  const readEnv = () => readFile(join(folder, ".env"), "utf8");
  return {
    secrets,
    run: () => promisify(execFile)("/bin/sh", [join(folder, "deploy/passwords.sh")]),
    env: readEnv,
    /** The settings of a container: it has the folder at another place, and compose fills in values. */
    inContainer: async (name: string): Promise<Record<string, string>> => {
      const lines = [...(await readEnv()).matchAll(/^([A-Z_]+)=(.*)$/gm)];
      const own = Object.fromEntries(lines.map(([, key = "", value = ""]) => [key, value]));
      const filled = (value: string) =>
        value
          .replace(/^\/run\/secrets/, secrets)
          .replace(/^\$\{(\w+):[-?](.*)\}$/, (_, key: string, otherwise: string) => own[key] || otherwise);
      const all = Object.entries<string>({ ...own, ...environmentOf(name) });
      return Object.fromEntries(all.map(([key, value]) => [key, filled(value)]));
    },
    write: (text: string) => writeFile(join(folder, ".env"), text),
    all: async () => {
      const names = (await readdir(secrets)).toSorted();
      return Promise.all(names.map(async (name) => [name, await readFile(join(secrets, name), "utf8")] as const));
    },
  };
}

test("random passwords are written once, each secret that compose mounts has a file, and only the owner can reach them", async () => {
  const checkout = await checkoutWith();
  await checkout.run();
  const first = await checkout.all();
  expect(first.map(([name]) => name)).toEqual(Object.keys(compose.secrets).toSorted());
  const passwords = first.flatMap(([, text]) => /(?<=:|^)[0-9a-f]{48}(?=@|\n)/.exec(text)?.[0] ?? []);
  expect(passwords).toHaveLength(6);
  expect(new Set(passwords).size).toBe(4);
  expect((await stat(checkout.secrets)).mode & 0o777).toBe(0o700);
  // The containers run as other users than the owner of the files.
  for (const [name] of first) expect((await stat(join(checkout.secrets, name))).mode & 0o777).toBe(0o644);
  const env = await checkout.env();
  expect(env).toContain("\nSECRETS_FOLDER=./secrets\n");
  expect(env).not.toMatch(new RegExp(passwords.join("|")));
  await checkout.run();
  expect(await checkout.all()).toEqual(first);
  expect(await checkout.env()).toBe(env);
});

const withKeys = `SERPER_API_KEY=canary-key
STRIPE_SECRET_KEY=sk_test_canary12
LOG_LEVEL=debug
`;

test("keys in .env are moved to files, and the settings say where they are", async () => {
  const checkout = await checkoutWith(withKeys.trimEnd()); // Its last line has no end.
  await checkout.run();
  const files = Object.fromEntries(await checkout.all());
  expect(files).toMatchObject({
    SERPER_API_KEY: "canary-key\n",
    STRIPE_SECRET_KEY: "sk_test_canary12\n",
    STRIPE_WEBHOOK_SECRET: "",
  });
  const env = await checkout.env();
  expect(env).not.toContain("canary");
  expect(env).toContain("LOG_LEVEL=debug\n");
  expect(env.match(/^\w+_FILE=.*$/gm)).toEqual([
    "SERPER_API_KEY_FILE=/run/secrets/SERPER_API_KEY",
    "STRIPE_SECRET_KEY_FILE=/run/secrets/STRIPE_SECRET_KEY",
  ]);
  expect((await stat(join(checkout.secrets, "..", ".env"))).mode & 0o777).toBe(0o600);
});

test.each(['SERPER_API_KEY="canary"', "SERPER_API_KEY=canary # of Ada"])(
  "a value of .env with quotes or a comment is refused by its name and stays there: %s",
  async (line) => {
    const checkout = await checkoutWith(`${line}\n`);
    const stderr = "SERPER_API_KEY in .env: expected the value alone, without quotes and without a comment\n";
    await expect(checkout.run()).rejects.toMatchObject({ stderr });
    expect(await checkout.env()).toContain(line);
  },
);

test("an .env with the line ends of Windows has the same secrets", async () => {
  const checkout = await checkoutWith("SERPER_API_KEY=canary\r\nSTRIPE_SECRET_KEY=\r\n");
  await checkout.run();
  expect(Object.fromEntries(await checkout.all())).toMatchObject({ SERPER_API_KEY: "canary\n", STRIPE_SECRET_KEY: "" });
  expect(await checkout.env()).not.toContain("STRIPE_SECRET_KEY_FILE");
});

test("a secret that .env has beside its file is refused, and neither is lost", async () => {
  const checkout = await checkoutWith(withKeys);
  await checkout.run();
  const first = await checkout.all();
  await checkout.write("SECRETS_FOLDER=./secrets\nSERPER_API_KEY=other\n");
  await expect(checkout.run()).rejects.toMatchObject({
    stderr: "SERPER_API_KEY is in .env, and ./secrets/SERPER_API_KEY has a secret too: remove one of them\n",
  });
  expect(await checkout.all()).toEqual(first);
  expect(await checkout.env()).toContain("SERPER_API_KEY=other");
});

test("who follows deploying.md chooses providers: compose refuses to start before, and a key goes to the workers alone", async () => {
  for (const name of ["api", "worker", "migrate"])
    expect(environmentOf(name)["SERP_PROVIDERS"]).toMatch(/^\$\{SERP_PROVIDERS:\?.*docs\/operating\/deploying\.md\}$/);
  const checkout = await checkoutWith();
  expect((await checkout.run()).stderr).toBe("now set SERP_PROVIDERS in .env: docs/operating/deploying.md\n");
  const env = await checkout.env();
  expect(env).toContain("\nSERP_PROVIDERS=\n");
  const [shown = ""] =
    /SERP_PROVIDERS=serper\n *SERPER_API_KEY=.+$/m.exec(readSource("docs/operating/deploying.md")) ?? [];
  const chosen = shown.split("\n").map((line) => line.trim().replace(/the key.*/, "canary-key"));
  const others = env.split("\n").filter((line) => !/^(SERP_PROVIDERS|SERPER_API_KEY)=/.test(line));
  await checkout.write([...others, ...chosen, ""].join("\n"));
  expect((await checkout.run()).stderr).toBe("");
  expect(await checkout.env()).not.toContain("canary");
  const worker = readConfig(await checkout.inContainer("worker"));
  expect(worker).toMatchObject({ SERP_PROVIDERS: ["serper"], SERPER_API_KEY: "canary-key" });
  expect(readConfig(await checkout.inContainer("api")).SERPER_API_KEY).toBeUndefined();
});

test("each process of ours starts with the files and the .env that the script writes", async () => {
  const checkout = await checkoutWith(
    `${withKeys}STRIPE_WEBHOOK_SECRET=whsec_canary12\nPUBLIC_URL=https://serp.example\nSERP_PROVIDERS=serper\n`,
  );
  await checkout.run();
  const files = Object.fromEntries(await checkout.all());
  const api = readConfig(await checkout.inContainer("api"));
  expect(api.REDIS_URL).toBe(`redis://api:${files["REDIS_API_PASSWORD"]?.trim()}@redis:6379`);
  expect(api.STRIPE_SECRET_KEY).toBe("sk_test_canary12");
  expect(api.SERPER_API_KEY).toBeUndefined();
  const worker = readConfig(await checkout.inContainer("worker"));
  expect(worker).toMatchObject({ DATABASE_URL: api.DATABASE_URL, SERPER_API_KEY: "canary-key" });
  expect(worker.STRIPE_SECRET_KEY).toBeUndefined();
  const { ownerUrl, processUrl } = readMigrationConfig(await checkout.inContainer("migrate"));
  expect(ownerUrl).toMatch(/^postgres:\/\/owner:[0-9a-f]{48}@postgres:5432\/serpmill$/);
  expect(processUrl).toBe(api.DATABASE_URL);
});
