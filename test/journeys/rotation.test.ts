import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { findRedisBinary } from "../../local/redis-binary.ts";
import { seesWorkers } from "../harness/assertions/metrics.ts";
import { PageVisitor } from "../harness/clients/page-visitor.ts";
import { SearchStream } from "../harness/clients/search-stream.ts";
import { acknowledged, sendEvent, unsigned } from "../harness/clients/topups.ts";
import { run } from "../harness/processes/run.ts";
import { type Answer, type Api, type Organization, Service, type Worker } from "../harness/processes/service.ts";
import { asOwner } from "../harness/servers/as-owner.ts";
import { acceptsLogin, addRedisUsers } from "../harness/servers/redis-users.ts";
import { refusal, type SerperStub, startSerperStub, tenOrganic } from "../harness/stubs/serper-stub.ts";
import { eventOf, signatureOf, stripeKey, StripeStub, webhookSecret } from "../harness/stubs/stripe-stub.ts";

/** Each secret is replaced as docs/operating/secrets.md says, while searches go on. None of them fails. */

const callers = 2; // More would only load the machine: each search passes through everything that is replaced.
const enough = 20; // Searches that use what was changed.
const newWord = () => randomBytes(12).toString("hex");

let service: Service;
let serper: SerperStub;
let stripe: StripeStub;
let folder: string;
let api: Api;
let worker: Worker;
let organization: Organization;
let stream: SearchStream<Answer>;
const serperKeys = new Set(["first-key"]);

const fileOf = (name: string) => join(folder, name);
const put = (name: string, value: string) => writeFile(fileOf(name), `${value}\n`);
const withFiles = (...names: string[]) =>
  Object.fromEntries(
    names.flatMap((name) => [
      [name, ""],
      [`${name}_FILE`, fileOf(name)],
    ]),
  );
const filesOfRedis = () => ({
  REDIS_API_PASSWORD_FILE: fileOf("REDIS_API_PASSWORD"),
  REDIS_WORKER_PASSWORD_FILE: fileOf("REDIS_WORKER_PASSWORD"),
  USERS_FILE: fileOf("users.acl"),
});
const redisUrl = (username: string, password: string) =>
  Object.assign(new URL(service.redisServer.url), { username, password }).href;
const postgresUrl = (username: string, password: string) =>
  Object.assign(new URL(service.databaseUrl), { username, password }).href;
const migrate = () => run("shared/database/migrate.ts", [], withFiles("DATABASE_URL", "MIGRATION_DATABASE_URL"));

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "serpmill-rotation-"));
  [serper, stripe] = await Promise.all([startSerperStub(), StripeStub.start()]);
  serper.otherwise = (request, response) =>
    (serperKeys.has(request.key ?? "") ? tenOrganic : refusal(403, "Unauthorized."))(request, response);
  service = await Service.start({ apis: 0, workers: 0, environment: { ...stripe.environment, ...serper.settings } });
  await Promise.all([
    put("REDIS_API_PASSWORD", "first-of-api"),
    put("REDIS_WORKER_PASSWORD", "first-of-worker"),
    put("REDIS_URL_API", redisUrl("api", "first-of-api")),
    put("REDIS_URL_WORKER", redisUrl("worker", "first-of-worker")),
    put("MIGRATION_DATABASE_URL", service.databaseUrl),
    put("DATABASE_URL", postgresUrl(`first_${newWord()}`, newWord())),
    put("SERPER_API_KEY", "first-key"),
    put("STRIPE_SECRET_KEY", stripeKey),
    put("STRIPE_WEBHOOK_SECRET", webhookSecret),
  ]);
  await addRedisUsers(service.redisServer, filesOfRedis());
  expect((await migrate()).exitCode).toBe(0);
  worker = await startWorker();
  api = await startApi();
  organization = await service.organization({ creditMils: 10_000_000, terms: { windowLimit: 1_000_000 } });
});
beforeEach(async () => {
  stream = new SearchStream(service, callers, (nth) =>
    service.search(organization.token, { keyword: `search ${nth}` }, { api: service.apis.indexOf(api) }),
  );
  await stream.more(enough);
});
afterEach(async () => {
  await stream.end();
  await service.rest();
  expect(await service.verify()).toMatchObject({ ok: true, violations: [] });
});
afterAll(async () => {
  await service.stop();
  await Promise.all([serper.close(), stripe.close(), rm(folder, { recursive: true })]);
});

const startWorker = () =>
  service.startWorker({
    ...withFiles("DATABASE_URL", "SERPER_API_KEY"),
    REDIS_URL: "",
    REDIS_URL_FILE: fileOf("REDIS_URL_WORKER"),
  });

async function startApi(): Promise<Api> {
  const settings = withFiles("DATABASE_URL", "STRIPE_SECRET_KEY", "STRIPE_WEBHOOK_SECRET");
  const started = await service.startApi({ ...settings, REDIS_URL: "", REDIS_URL_FILE: fileOf("REDIS_URL_API") });
  await service.until(() => seesWorkers(started));
  return started;
}

/** A new worker starts before the old one stops. */
async function replaceWorker(): Promise<void> {
  const old = worker;
  worker = await startWorker();
  expect(await old.stop()).toBe(0);
}

/** A new API starts, the load balancer sends searches to it, and the old one stops. */
async function replaceApi(): Promise<void> {
  const old = api;
  api = await startApi();
  expect(await old.stop()).toBe(0);
}

/** Whether a password of Redis is accepted. */
const redisAccepts = (user: string, password: string) => acceptsLogin(redisUrl(user, password));

async function acceptPasswords(): Promise<void> {
  const { command } = await findRedisBinary();
  const cli = [command.replace(/server$/, "cli"), "-p", String(service.redisServer.port)];
  const settings = Object.entries(filesOfRedis());
  const assignments = settings.map(([name, value]) => `${name}=${value}`);
  await promisify(execFile)("env", [...assignments, "sh", "deploy/redis/accept-passwords.sh", ...cli]);
}

test("a provider's key is replaced by replacing the workers, and no search fails", async () => {
  serperKeys.add("second-key"); // The provider gives a second key.
  await put("SERPER_API_KEY", "second-key");
  await replaceWorker();
  serperKeys.delete("first-key"); // The provider revokes the first one.
  const before = serper.requests.length;
  await stream.more(enough);
  expect(stream.failures).toEqual([]);
  expect(new Set(serper.requests.slice(before).map(({ key }) => key))).toEqual(new Set(["second-key"]));
});

test("the login to Postgres is replaced by a second one, and no search fails", async () => {
  const { rows: logins } = await asOwner(service.databaseUrl, (owner) =>
    owner.query(
      "select distinct usename as name from pg_stat_activity where datname = current_database() and usename like 'first_%'",
    ),
  );
  const [{ name: first }] = logins;
  const [second, password] = [`second_${newWord()}`, newWord()];
  await put("DATABASE_URL", postgresUrl(second, password));
  expect(await migrate()).toMatchObject({
    exitCode: 0,
    stdout: `the database is up to date\ncreated the role ${second}, as which the processes log in\n`,
  });
  await replaceWorker();
  await replaceApi();
  await stream.more(enough);
  await asOwner(service.databaseUrl, async (owner) => {
    const sessions = "select from pg_stat_activity where usename = $1";
    expect((await owner.query(sessions, [first])).rowCount).toBe(0);
    expect((await owner.query(sessions, [second])).rowCount).toBeGreaterThan(0);
    await owner.query(`drop role ${owner.escapeIdentifier(first)}`);
  });
  await stream.more(enough);
  expect(stream.failures).toEqual([]);
  const gone = new pg.Client({ connectionString: postgresUrl(first, password) });
  await expect(gone.connect()).rejects.toThrow(/password authentication failed|does not exist/);
});

test("the passwords of Redis are replaced while it accepts the old and the new ones, and no search fails", async () => {
  await put("REDIS_API_PASSWORD", "first-of-api\nsecond-of-api");
  await put("REDIS_WORKER_PASSWORD", "first-of-worker\nsecond-of-worker");
  await acceptPasswords();
  await put("REDIS_URL_API", redisUrl("api", "second-of-api"));
  await put("REDIS_URL_WORKER", redisUrl("worker", "second-of-worker"));
  await replaceWorker();
  await replaceApi();
  await put("REDIS_API_PASSWORD", "second-of-api");
  await put("REDIS_WORKER_PASSWORD", "second-of-worker");
  await acceptPasswords();
  await stream.more(enough);
  expect(stream.failures).toEqual([]);
  for (const user of ["api", "worker"]) {
    expect(await redisAccepts(user, `first-of-${user}`)).toBe(false);
    expect(await redisAccepts(user, `second-of-${user}`)).toBe(true);
  }
});

test("passwords that Redis cannot have change nothing, and are not printed", async () => {
  await put("REDIS_API_PASSWORD", "canary with a space!");
  const refused = await acceptPasswords().catch((error: { stderr: string }) => error.stderr);
  expect(refused).toBe("REDIS_API_PASSWORD: expected letters, digits, - or _\n");
  await put("REDIS_API_PASSWORD", "second-of-api");
  expect(await redisAccepts("api", "second-of-api")).toBe(true);
  await stream.more(enough);
  expect(stream.failures).toEqual([]);
});

const pay = async () => {
  const person = new PageVisitor(service);
  person.api = service.apis.indexOf(api);
  await person.signIn(organization.token);
  return person.post("/billing/topup", { organization: organization.organizationId, mils: "25000" });
};

test("Stripe's secret key is replaced by replacing the APIs, and no search and no top-up fails", async () => {
  const second = `sk_test_${newWord()}`;
  stripe.keys.add(second);
  expect((await pay()).status).toBe(303);
  await put("STRIPE_SECRET_KEY", second);
  await replaceApi();
  stripe.keys.delete(stripeKey);
  expect((await pay()).status).toBe(303);
  await stream.more(enough);
  expect(stream.failures).toEqual([]);
});

test("the secret of Stripe's events is replaced while Stripe signs with both, and no search and no event is refused", async () => {
  const second = `whsec_${newWord()}`;
  const send = (...secrets: string[]) => {
    const event = eventOf(stripe.paid(organization.organizationId, 1_000));
    const signature = signatureOf(JSON.stringify(event), { secret: secrets });
    return sendEvent(service, event, { api: service.apis.indexOf(api), signature });
  };
  expect(await send(webhookSecret)).toMatchObject(acknowledged);
  expect(await send(second, webhookSecret)).toMatchObject(acknowledged); // Stripe signs with both from now on.
  await put("STRIPE_WEBHOOK_SECRET", second);
  await replaceApi();
  expect(await send(second, webhookSecret)).toMatchObject(acknowledged);
  expect(await send(second)).toMatchObject(acknowledged); // The old one has expired.
  expect(await send(webhookSecret)).toMatchObject(unsigned);
  await stream.more(enough);
  expect(stream.failures).toEqual([]);
});
