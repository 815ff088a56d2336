import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { zstdDecompressSync } from "node:zlib";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { keysOf } from "../../shared/credits/redis-keys.ts";
import { unpaidLevels } from "../../shared/credits/unpaid-calls.ts";
import { listSessions, sessionSearchesOf } from "../../api/billing/session/session-keys.ts";
import { beginErasure } from "../../commands/erasure/erase-organization.ts";
import { newId } from "../../shared/ids.ts";
import { hashToken } from "../../api/tokens/tokens.ts";
import { readQuery } from "../../shared/query/query.ts";
import { queueKeys } from "../../shared/queue/search-queue.ts";
import { insertRefused } from "../../shared/search-log/refused-searches.ts";
import { everythingInPostgres, everythingInRedis } from "../harness/assertions/everything-in-redis.ts";
import { requestIdAt } from "../harness/fixtures/request-ids.ts";
import { PageVisitor } from "../harness/clients/page-visitor.ts";
import { Operator } from "../harness/processes/operator.ts";
import { Service } from "../harness/processes/service.ts";
import { disconnect, StripeStub } from "../harness/stubs/stripe-stub.ts";
import { asOwner } from "../harness/servers/as-owner.ts";

/** `org export` and `org erase`, on all that an organization leaves behind. */

const name = "Quokka Quarries GmbH";
const tokenName = "Laptop of Mrs. Numbat";
const keyword = "zyzzyva-of-the-customer";
const kept = { RAW_ANSWER_MINUTES: "10", KEPT_ANSWERS_DAYS: "30" };
const service = await Service.start({ environment: kept, end: afterAll });
const operator = new Operator(service, kept);

const refusal = { code: "bad_request", reason: undefined, message: "No.", query: undefined, refusals: 1 };

const shown = z.object({ suspendedAt: z.string().nullable(), erasedAt: z.string().nullable() });
const created = z.object({ orgId: z.string(), tokenId: z.string(), token: z.string() });

/** An organization that has searched with and without a key, signed in, and has a failed search in the queue. */
async function customer() {
  const made = await operator.run("org", "create", "--name", name, "--plan", "free", "--credit", "100");
  const { orgId, tokenId, token } = created.parse(made);
  await operator.run("token", "issue", orgId, "--name", tokenName);
  expect(await operator.run("org", "keep-answers", orgId, "--days", "9")).toEqual({ orgId, days: 9, daysMax: 30 });
  const [keyed, plain] = await Promise.all([
    service.search(token, { keyword }, { key: "first" }),
    service.search(token, { keyword: `${keyword} 2` }),
  ]);
  expect([keyed.status, plain.status]).toEqual([200, 200]);
  expect(await new PageVisitor(service).signIn(token)).toMatchObject({ status: 303 });
  const requestIds = [keyed.requestId, plain.requestId];
  // As the playground keeps what a session searched.
  const [{ idHash } = { idHash: "" }] = await listSessions(service.redis, orgId);
  await service.redis.zadd(sessionSearchesOf(orgId, idHash), 1, requestIds[0] ?? "");
  const rawKeys = requestIds.map((id) => `raw:${id}`);
  await service.until(async () => (await service.redis.exists(...rawKeys)) === 2);
  await service.until(async () => {
    const { rows } = await service.database.query("select from search_log where organization_id = $1", [orgId]);
    return rows.length === 2;
  });
  await service.until(async () => {
    const { rows } = await service.database.query("select from readable_answers where organization_id = $1", [orgId]);
    return rows.length === 2;
  });
  await failedJob(orgId);
  await service.rest();
  // As a caller who took no answers, and a payer who made tokens, leave them for a while.
  const unpaid = [true, false].flatMap((isKeyed) => unpaidLevels(orgId, tokenId, isKeyed));
  for (const key of [...unpaid, `pages:tokens:${orgId}`]) await service.redis.set(key, "1", "EX", 3_600);
  return { orgId, tokenId, token, rawKeys };
}

/** A job as BullMQ keeps it once its search has failed. */
async function failedJob(organizationId: string): Promise<void> {
  const requestId = newId("req");
  const query = readQuery({ keyword: `${keyword} 3` });
  const times = { deadlineAtMs: 1, enqueuedAtMs: 1, timeoutMs: 1 };
  const data = { requestId, organizationId, query, priceMils: 5, remainingMils: 5, ...times, inbox: "inbox:x" };
  const job = { name: "search", data: JSON.stringify(data), opts: "{}", timestamp: "1", failedReason: "x" };
  await service.redis.hset(queueKeys.job(requestId), job);
  await service.redis.zadd(queueKeys.failed, Date.now(), requestId);
}

/** The text of all tables, and of all compressed answers in them. */
async function textInPostgres(): Promise<string> {
  const bodies = "select body from answers union all select body from kept_answers";
  const rows = await asOwner(service.databaseUrl, async (owner) => (await owner.query(bodies)).rows);
  const answers = rows.map(({ body }) => zstdDecompressSync(body).toString());
  return (await everythingInPostgres(service.databaseUrl)) + answers.join();
}

test("an erased organization has no trace of names, keywords, answers or sessions, and the ledger still verifies", async () => {
  const { orgId, tokenId, token, rawKeys } = await customer();
  const traces = [name, tokenName, keyword, hashToken(token).toString("hex")];
  const before = await textInPostgres();
  for (const trace of traces) expect(before).toContain(trace);
  const ledger = await service.ledgerOf(orgId);

  const erased = { orgId, erased: true, balanceMils: 90, tokens: 2, answers: 3, searches: 2 };
  expect(await operator.run("org", "erase", orgId, "--yes")).toEqual(erased);
  expect(await service.redis.keys(`*${orgId}*`)).toEqual([]);
  expect(await service.redis.exists(...rawKeys)).toBe(0);
  expect(await service.redis.keys("session:*")).toEqual([]);
  const after = await textInPostgres();
  for (const trace of traces) expect(after).not.toContain(trace);
  // The cache that all organizations share expires by itself. An inbox has the last reply until the next ones come.
  const other = await service.organization({ creditMils: 100_000 });
  await service.until(async () => {
    await service.search(other.token, { keyword: "tea" });
    const left = await everythingInRedis(service.redis);
    return traces.every((trace) => !left.includes(trace));
  });
  await service.rest();

  expect(await service.search(token, { keyword })).toMatchObject({ status: 401 });
  expect(await service.ledgerOf(orgId)).toEqual(ledger);
  expect(await service.verify()).toMatchObject({ ok: true, violations: [] });
  expect(await operator.run("org", "show", orgId)).toMatchObject({ name: "erased", balanceMils: 90 });

  const nothing = { tokens: 0, answers: 0, searches: 0 };
  expect(await operator.run("org", "erase", orgId, "--yes")).toEqual({ ...erased, ...nothing });
  const audit = JSON.stringify(await operator.run("audit", "list", "--org", orgId));
  expect(audit.match(/organization\.erased/g)).toHaveLength(1);
  expect(audit).toContain(tokenId);
});

test.each([
  ["org", "resume"],
  ["credit", "grant", "5"],
  ["credit", "correct", "-5", "--reason", "test"],
  ["token", "issue"],
  ["org", "rename", "Acme"],
  ["plan", "assign", "payg"],
])("an erased organization stays so: %s %s is refused", async (subject, verb, ...rest) => {
  const { organizationId: orgId } = await service.organization({ creditMils: 0 });
  await asOwner(service.databaseUrl, (client) =>
    client.query("update organizations set erased_at = now() where id = $1", [orgId]),
  );
  const { exitCode, stderr } = await operator.try(subject, verb, orgId, ...rest);
  expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: `The organization ${orgId} was erased.\n` });
});

test("while a search runs nothing is erased, but nothing new begins", async () => {
  const { organizationId: orgId, token } = await service.organization();
  const { holds } = keysOf(orgId);
  await service.redis.hset(holds, newId("req"), `5:${Date.now() + 60_000}:`, "held", "5");
  const { exitCode, stderr } = await operator.try("org", "erase", orgId, "--yes");
  expect(exitCode).toBe(1);
  expect(stderr).toContain("1 searches still run and 0 charges wait");
  expect(await operator.run("org", "show", orgId)).toMatchObject({ name: "Test", erasedAt: null });
  expect(await service.search(token, { keyword })).toMatchObject({ status: 401 });
  await service.redis.del(holds);
});

test("a search that is admitted while an erasure waits for the records of the last ones keeps it from erasing", async () => {
  const { organizationId: orgId } = await service.organization();
  const { holds } = keysOf(orgId);
  const erasing = operator.try("org", "erase", orgId, "--yes");
  await service.until(async () => shown.parse(await operator.run("org", "show", orgId)).suspendedAt !== null);
  await sleep(3_000);
  await service.redis.hset(holds, newId("req"), `5:${Date.now() + 60_000}:`, "held", "5");
  expect(await erasing).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("1 searches still run") });
  expect(await operator.run("org", "show", orgId)).toMatchObject({ erasedAt: null });
  await service.redis.del(holds);
});

/** What the command is about to send when it is killed, and whether Postgres has erased the organization by then. */
const deaths = [
  { before: "publish", isErased: false },
  { before: "begin_erasure", isErased: false },
  { before: '"tokens"', isErased: true },
  { before: '"search_log"', isErased: true },
  { before: ":sessions", isErased: true },
  { before: ":balance", isErased: true },
  { before: "hgetall", isErased: true },
];

test("an erasure whose process is killed between any two steps is finished by the next run, with one entry", async () => {
  const killed = await Promise.all(deaths.map(async (death) => ({ ...death, ...(await customer()) })));
  await Promise.all(
    killed.map(async ({ before, orgId, isErased }) => {
      const signal = await operator.killBefore(before, "org", "erase", orgId, "--yes");
      const { erasedAt } = shown.parse(await operator.run("org", "show", orgId));
      expect({ before, signal, isErased: erasedAt !== null }).toEqual({ before, signal: "SIGKILL", isErased });
    }),
  );
  await Promise.all(killed.map(({ orgId }) => operator.run("org", "erase", orgId, "--yes")));
  for (const { orgId, rawKeys } of killed) {
    expect(await service.redis.exists(...rawKeys)).toBe(0);
    expect(await service.redis.keys(`{${orgId}}*`)).toEqual([]);
    const audit = JSON.stringify(await operator.run("audit", "list", "--org", orgId));
    expect(audit.match(/organization\.erased/g)).toHaveLength(1);
  }
  expect(await service.redis.keys("session:*")).toEqual([]);
  expect(await service.redis.zcard(queueKeys.failed)).toBe(0);
  expect(await textInPostgres()).not.toContain(name);
});

test("an erasure that fails halfway says so, and the next run goes on", async () => {
  const { orgId } = await customer();
  await asOwner(service.databaseUrl, async (client) => {
    await client.query("begin");
    await client.query("select from search_log where organization_id = $1 for update", [orgId]);
    const { exitCode, stderr } = await operator.try("org", "erase", orgId, "--yes");
    expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: expect.stringContaining("partly erased. Run the") });
    await client.query("rollback");
  });
  const done = { orgId, erased: true, balanceMils: 90, tokens: 0, answers: 0, searches: 2 };
  expect(await operator.run("org", "erase", orgId, "--yes")).toEqual(done);
});

test("a payment that an erased organization has begun at Stripe cannot be finished, and a Stripe that is away stops no erasure", async () => {
  const stub = await StripeStub.start();
  onTestFinished(stub.close);
  const payments = new Operator(service, { ...kept, ...stub.environment });
  const { organizationId: orgId } = await service.organization({ creditMils: 0 });
  const open = { status: "open", payment_status: "unpaid" } as const;
  const [begun, paid, saving] = [stub.paid(orgId, 100, open), stub.paid(orgId, 100), stub.paid(orgId, 0, open)];
  saving.mode = "setup";
  const others = [stub.paid(newId("org"), 100, open), stub.paid(orgId, 100, { ...open, metadata: {} })];
  stub.away = disconnect;
  expect(await payments.try("org", "erase", orgId, "--yes")).toMatchObject({
    exitCode: 0,
    stdout: expect.stringContaining('"erased":true'),
    stderr: expect.stringContaining("or refund what is paid in the next 24 hours"),
  });
  stub.away = undefined;
  await payments.run("org", "erase", orgId, "--yes");
  expect([begun, paid, saving].map(({ status }) => status)).toEqual(["expired", "complete", "expired"]);
  expect(others.map(({ status }) => status)).toEqual(["open", "open"]);
});

test("nothing is erased of an organization whose tokens work", async () => {
  const { organizationId } = await service.organization();
  await operator.run("org", "suspend", organizationId);
  const actor = { kind: "operator", name: "ada", host: "here" } as const;
  expect(await beginErasure(service.database, actor, organizationId)).toBe("active");
});

test("an erasure begins only if the operator types the id again, or says --yes", async () => {
  const { organizationId: orgId } = await service.organization();
  const { exitCode, stderr } = await operator.try("org", "erase", orgId);
  expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: expect.stringContaining("Add --yes") });
  const mistyped = await operator.tryAtTerminal({ ask: async () => "another" }, "org", "erase", orgId);
  expect(mistyped).toMatchObject({ exitCode: 1, stderr: "The id does not match. Nothing was changed.\n" });
  expect(await operator.run("org", "show", orgId)).toMatchObject({ suspendedAt: null, erasedAt: null });
});

test("an export has what the service has about an organization, and no hash", async () => {
  const { orgId, token, tokenId } = await customer();
  await operator.run("limit", "org", orgId, "--day", "500");
  await asOwner(service.databaseUrl, (owner) =>
    owner.query(
      `insert into webhook_events (id, organization_id, type, body, next_attempt_at)
       select 'evt_0' || lpad(n::text, 25, '0'), $1, 'webhook.test', '{}', null from generate_series(1, 9000) n`,
      [orgId],
    ),
  );
  // Three pages, of rows of which several have the same time.
  const refused = Array.from({ length: 2_500 }, (_, n) => requestIdAt(Date.now() - Math.floor(n / 3)));
  await insertRefused(
    service.database,
    refused.map((requestId) => ({ requestId, organizationId: orgId, tokenId, ...refusal })),
  );
  const { stdout } = await operator.try("org", "export", orgId);
  const lines = stdout
    .trimEnd()
    .split("\n")
    .map((line) => z.looseObject({ kind: z.string() }).parse(JSON.parse(line)));
  const count = (kind: string) => lines.filter((line) => line.kind === kind).length;
  const kinds = ["organization", "token", "ledger_entry", "search", "session", "answer"];
  expect(kinds.map(count)).toEqual([1, 2, 3, 2, 1, 1]);
  // 100 a day of each of three types, for 30 days.
  expect(count("webhook_event")).toBe(9_000);
  const exported = lines.flatMap((line) => (line.kind === "refused_search" ? [line["requestId"]] : []));
  expect(exported).toEqual(refused.toSorted());
  expect(lines).toContainEqual(expect.objectContaining({ kind: "spending_limits", dayLimitMils: 500 }));
  expect(lines).toContainEqual({ kind: "kept_answer_days", days: 9 });
  expect(count("raw_answer")).toBeGreaterThanOrEqual(2);
  expect(count("audit_entry")).toBeGreaterThanOrEqual(4);
  expect(lines.at(-1)).toEqual({ kind: "end", orgId, lines: lines.length - 1 });
  expect(stdout).toContain(name);
  const searched = JSON.stringify(lines.filter(({ kind }) => kind === "search"));
  for (const one of [keyword, `${keyword} 2`]) expect(searched).toContain(`"keyword":"${one}"`);
  expect(searched).not.toMatch(/keyHash|costMicroUsd/);
  for (const secret of [token.slice(4, -4), hashToken(token).toString("hex")]) expect(stdout).not.toContain(secret);

  const folder = await mkdtemp(join(tmpdir(), "serpmill-export-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const output = join(folder, "export.jsonl");
  const written = await operator.run("org", "export", orgId, "--output", output);
  const text = await readFile(output, "utf8");
  expect(written).toEqual({ orgId, lines: text.trimEnd().split("\n").length - 1, output });
  expect((await stat(output)).mode & 0o777).toBe(0o600);
  const stderr = `The file ${output} exists already.\n`;
  expect(await operator.try("org", "export", orgId, "--output", output)).toEqual({ exitCode: 1, stdout: "", stderr });
});

test("an export ends with its reader, and one that fails leaves no file with a part", async () => {
  const { organizationId: orgId } = await service.organization();
  const taken: string[] = [];
  const leave = async (line: string) => taken.push(line) === 0;
  expect(await operator.tryAtTerminal({ writeLine: leave }, "org", "export", orgId)).toMatchObject({ exitCode: 0 });
  expect(taken).toHaveLength(1);

  const folder = await mkdtemp(join(tmpdir(), "serpmill-export-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const output = join(folder, "export.jsonl");
  await asOwner(service.databaseUrl, (owner) => owner.query("revoke select on search_log from serpmill"));
  const failed = await operator.try("org", "export", orgId, "--output", output);
  await asOwner(service.databaseUrl, (owner) => owner.query("grant select on search_log to serpmill"));
  expect(failed).toMatchObject({ exitCode: 1, stdout: "" });
  expect(existsSync(output)).toBe(false);
});
