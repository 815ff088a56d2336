import { afterEach, beforeEach, expect, test } from "vitest";
import { readBacklog } from "../harness/assertions/backlog.ts";
import { unpaidCalls } from "../harness/assertions/metrics.ts";
import { type PageVisitor, signIn } from "../harness/clients/page-visitor.ts";
import { type Organization, Service } from "../harness/processes/service.ts";
import { type SerperStub, startSerperStub } from "../harness/stubs/serper-stub.ts";

/** A person who cancels a search of the playground: it is either not charged and never answered, or charged and answered. */

const slots = 4;
let service: Service;
let stub: SerperStub;
beforeEach(async () => {
  stub = await startSerperStub();
  service = await Service.start({
    environment: { ...stub.settings, WORKER_CONCURRENCY: String(slots), SEARCH_DEADLINE_MS: "10000" },
  });
});
afterEach(async () => {
  await service.rest();
  expect(await service.verify()).toMatchObject({ ok: true, violations: [] });
  await Promise.all([service.stop(), stub.close()]);
});

const callsFor = (keyword: string) => stub.requests.filter(({ body }) => body.q === keyword).length;
const isAsked = (keyword: string) => service.until(async () => callsFor(keyword) > 0);
const holds = ({ organizationId }: Organization) => service.holdsOf(organizationId);
const hasHolds = (organization: Organization, open: number) =>
  service.until(async () => (await holds(organization)).open === open);

/** Someone at a form of the playground. */
async function atForm(options: Parameters<Service["organization"]>[0] = {}) {
  const organization = await service.organization({ creditMils: 1_000, ...options });
  const person = await signIn(service, organization);
  const post = (path: string, keyword: string, more: Record<string, string>) =>
    person.post(path, {
      organization: organization.organizationId,
      key: `form of ${keyword}`.replaceAll(" ", "-"),
      keyword,
      ...more,
    });
  return {
    organization,
    search: (keyword: string, more = {}): ReturnType<PageVisitor["post"]> => post("/playground/search", keyword, more),
    cancel: async (keyword: string, more = {}) => {
      const { status, text } = await post("/playground/cancel", keyword, more);
      expect(status).toBe(200);
      return JSON.parse(text) as { outcome: string; address?: string };
    },
    ends: async () => {
      await service.rest();
      return (await service.ledgerOf(organization.organizationId)).slice(1).map(({ kind, reason }) => reason ?? kind);
    },
  };
}

test("a search that runs ends without a charge, sends no further call, and keeps its concurrency slot until its call has ended", async () => {
  const { organization, search, cancel, ends } = await atForm();
  const release = stub.hold();
  const page = search("deep", { depth: "100" });
  await isAsked("deep");
  expect(await cancel("deep", { depth: "100" })).toEqual({ outcome: "cancelled" });
  expect(await holds(organization)).toEqual({ open: 1, heldMils: 0 });
  expect(await cancel("deep", { depth: "100" })).toEqual({ outcome: "cancelled" });
  release();
  expect((await page).status).not.toBe(200);
  await hasHolds(organization, 0);
  expect([callsFor("deep"), await unpaidCalls(service)]).toEqual([1, 1]);
  expect(await ends()).toEqual(["caller_disconnected"]);
  expect((await search("deep", { depth: "100" })).status).toBe(200);
  expect(await ends()).toEqual(["caller_disconnected", "charge"]);
});

test("after its charge a search stands, however often it is cancelled, and the page of its answer is named", async () => {
  const { search, cancel, ends } = await atForm();
  expect(await cancel("coffee")).toEqual({ outcome: "not_running" });
  const page = await search("coffee");
  const [address] = /\/billing\/searches\/req_\w+/.exec(page.text) ?? [];
  const told = await Promise.all([1, 2, 3].map(() => cancel("coffee")));
  for (const one of told) expect(one).toEqual({ outcome: "charged", address });
  expect((await search("coffee")).status).toBe(200);
  expect(await ends()).toEqual(["charge"]);
});

test("a search that waits in the queue is removed, and none of its calls is sent or counted", async () => {
  const { organization, search, cancel, ends } = await atForm();
  const release = stub.hold();
  const running = Array.from({ length: slots }, (_, n) => service.search(organization.token, { keyword: `busy ${n}` }));
  await service.untilRunning(slots);
  const page = search("waiting");
  await service.until(async () => (await readBacklog(service.redis)).waiting === 1);
  expect(await cancel("waiting")).toEqual({ outcome: "cancelled" });
  expect(await holds(organization)).toMatchObject({ open: slots });
  release();
  for (const { status } of await Promise.all(running)) expect(status).toBe(200);
  expect([callsFor("waiting"), await unpaidCalls(service)]).toEqual([0, 0]);
  expect((await ends()).filter((end) => end !== "charge")).toEqual(["caller_disconnected"]);
  expect((await page).status).toBe(504);
});

test("who cancels search after search meets the budget of unpaid calls", async () => {
  // One token may use half of it.
  const { search, cancel, organization } = await atForm({ terms: { unpaidCalls: 3 } });
  const release = stub.hold();
  const pages = ["one", "two"].map((keyword) => search(keyword));
  for (const keyword of ["one", "two"]) {
    await isAsked(keyword);
    expect(await cancel(keyword)).toEqual({ outcome: "cancelled" });
  }
  release();
  await Promise.all(pages);
  await hasHolds(organization, 0);
  expect((await search("three")).status).toBe(429);
  expect(callsFor("three")).toBe(0);
});

test("whenever a cancellation comes, the search is charged and answered, or neither", async () => {
  const persons = await Promise.all([1, 2, 3].map(() => atForm()));
  const races = persons.flatMap(({ search, cancel }, from) =>
    Array.from({ length: 15 }, async (_, n) => {
      const keyword = `race ${from} ${n}`;
      const page = search(keyword);
      // From before the admission until after the answer.
      for (let turns = 0; turns < 3 * n; turns += 1) await service.redis.ping();
      const first = (await cancel(keyword)).outcome;
      const { status } = await page;
      const second = (await cancel(keyword)).outcome;
      return { first, isAnswered: status === 200, second };
    }),
  );
  const ended = await Promise.all(races);
  // A refusal or a time-out is neither charged nor answered, whatever the cancellation found.
  const isSound: Record<string, boolean[]> = { charged: [true], cancelled: [false], not_running: [true, false] };
  const unsound = ended.filter(
    ({ first, isAnswered, second }) => isAnswered !== (second === "charged") || !isSound[first]?.includes(isAnswered),
  );
  expect(unsound).toEqual([]);
  const ledgers = await Promise.all(persons.map(({ ends }) => ends()));
  const answered = ended.filter(({ isAnswered }) => isAnswered);
  expect(ledgers.flat().filter((end) => end === "charge")).toHaveLength(answered.length);
});
