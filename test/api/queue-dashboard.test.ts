import { afterAll, expect, test } from "vitest";
import { z } from "zod";
import { createQueue, queueKeys } from "../../shared/queue/search-queue.ts";
import { Service } from "../harness/processes/service.ts";

/** The dashboard of the queue on the ops port of the API, over a queue that no worker takes from. */

const waitingMax = 2_000;
const newest = "req_01999";

const jobOf = (requestId: string) => ({
  name: "search",
  data: { requestId, organizationId: "org_1", query: { keyword: "tea" } },
  opts: { jobId: requestId },
});

const service = await Service.start({ apis: 0, workers: 0, end: afterAll });
const api = await service.startApi();
// The API stores the options of the queue after its start.
await service.until(async () => (await service.redis.hget(queueKeys.job("meta"), "opts.maxLenEvents")) === "1000");
const queue = createQueue({ url: service.redisServer.url }, { skipMetasUpdate: true });
await queue.addBulk(Array.from({ length: waitingMax }, (_, at) => jobOf(`req_${String(at).padStart(5, "0")}`)));
await queue.close();

const visit = (path: string, init?: RequestInit) => fetch(`${api.opsUrl}/queues${path}`, init);
const listPath = "/api/queues?activeQueue=searches&status=waiting";

const listing = z.object({
  queues: z.tuple([
    z.object({
      name: z.string(),
      readOnlyMode: z.boolean(),
      counts: z.record(z.string(), z.number()),
      jobs: z.array(z.object({ id: z.string(), data: z.object({ organizationId: z.string() }) })),
    }),
  ]),
});

async function list(path: string) {
  const response = await visit(path);
  expect(response.status).toBe(200);
  return listing.parse(await response.json()).queues[0];
}

const connectionNames = async () => String(await service.redis.client("LIST"));
const commandsRun = async () => Number(/total_commands_processed:(\d+)/.exec(await service.redis.info("stats"))?.[1]);

test("before the first visit the API has no connection for it", async () => {
  expect(await connectionNames()).toContain("name=serpmill-queue");
  expect(await connectionNames()).not.toContain("serpmill-queue-dashboard");
});

test("it lists the waiting searches, newest first, and leaves the options of the queue as they are", async () => {
  const options = await service.redis.hgetall(queueKeys.job("meta"));
  const { name, readOnlyMode, counts, jobs } = await list(listPath);
  expect({ name, readOnlyMode, waiting: counts.waiting }).toEqual({
    name: "searches",
    readOnlyMode: true,
    waiting: waitingMax,
  });
  expect(jobs[0]).toEqual({ id: newest, data: { organizationId: "org_1" } });
  expect(await connectionNames()).toContain("serpmill-queue-dashboard");
  expect(options).toHaveProperty(["opts.maxLenEvents"], "1000");
  expect(await service.redis.hgetall(queueKeys.job("meta"))).toEqual(options);
});

test("one view reads at most 50 searches of each state, whatever it asks for", async () => {
  const before = await commandsRun();
  for (const size of ["9999", "1e4", "50"]) {
    const { jobs } = await list(`${listPath}&jobsPerPage=${size}`);
    expect({ size, jobs: jobs.length }).toEqual({ size, jobs: 50 });
  }
  expect(await commandsRun()).toBeLessThan(before + waitingMax / 4);
});

test.each([
  ["PUT", `/api/queues/searches/${newest}/clean`],
  ["PUT", `/api/queues/searches/${newest}/retry`],
  ["PUT", `/api/queues/searches/${newest}/promote`],
  ["PATCH", `/api/queues/searches/${newest}/update-data`],
  ["POST", "/api/queues/searches/add"],
  ["PUT", "/api/queues/searches/pause"],
  ["PUT", "/api/queues/searches/empty"],
  ["PUT", "/api/queues/searches/obliterate"],
  ["DELETE", "/"],
] as const)("it refuses every action: %s %s", async (method, path) => {
  const before = await service.redis.hgetall(queueKeys.job(newest));
  const body = JSON.stringify({ name: "search", data: {}, jobData: {}, options: {} });
  const { status } = await visit(path, { method, headers: { "content-type": "application/json" }, body });
  expect(status).toBe(405);
  expect(await service.redis.llen(queueKeys.waiting)).toBe(waitingMax);
  expect(await service.redis.hgetall(queueKeys.job(newest))).toEqual(before);
  expect(await service.redis.hexists(queueKeys.job("meta"), "paused")).toBe(0);
});

test("page, files, data and errors forbid foreign scripts, framing, sniffing and caching", async () => {
  const page = await visit("");
  expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
  const script = /src="(static\/js\/[^"]+)"/.exec(await page.text())?.[1] ?? "";
  const file = await visit(`/${script}`);
  expect(file.headers.get("content-type")).toMatch(/^(text|application)\/javascript/);
  const answers = [page, file, await visit(listPath), await visit("/api/nothing"), await visit("/api/queues/%ff/1")];
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 404, 400]);
  for (const { headers } of answers) {
    expect(headers.get("content-security-policy")).toMatch(
      /default-src 'none';.* script-src 'self';.* frame-ancestors 'none'/,
    );
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("x-powered-by")).toBeNull();
    expect(headers.get("cache-control")).toBe("no-store");
  }
});

test("only the API has it", async () => {
  const worker = await service.startWorker();
  expect((await fetch(`${worker.opsUrl}/queues`)).status).toBe(404);
});

test("without Redis it answers 503, visited before or not, and recovers by itself", async () => {
  const unvisited = await service.startApi();
  const statuses = () =>
    Promise.all([api, unvisited].map(async ({ opsUrl }) => (await fetch(`${opsUrl}/queues${listPath}`)).status));
  const { port, kill, exited } = service.redisServer;
  kill("SIGKILL");
  await exited;
  expect(await statuses()).toEqual([503, 503]);
  expect(await (await visit("/")).text()).toBe("Redis does not answer\n");
  await service.restartRedis(port);
  await expect.poll(statuses).toEqual([200, 200]);
});
