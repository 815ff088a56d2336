import { afterEach, beforeEach, expect, test } from "vitest";
import { type SerperStub, startSerperStub, tenOrganic, reply } from "../harness/stubs/serper-stub.ts";
import { Service } from "../harness/processes/service.ts";

let service: Service;
let stub: SerperStub;

beforeEach(async () => {
  stub = await startSerperStub();
  const environment = { SERP_PROVIDERS: "serper", SERPER_API_KEY: "secret", SERPER_BASE_URL: stub.url };
  service = await Service.start({ apis: 2, workers: 2, environment });
});
afterEach(async () => {
  await service.rest();
  expect(await service.verify()).toMatchObject({ ok: true, violations: [] });
  await Promise.all([service.stop(), stub.close()]);
});

/** Holds the provider's answers back until the returned function is called. */
function holdAnswers(): () => void {
  const { promise: open, resolve } = Promise.withResolvers<void>();
  stub.otherwise = (request, response) => void open.then(() => tenOrganic(request, response));
  return resolve;
}

const running = async (count: number) =>
  service.until(async () => (await service.redis.llen("{serpmill}:searches:active")) === count);

test("a hundred equal searches of several organizations cost one call, and each of them its price", async () => {
  const answer = holdAnswers();
  const organizations = await Promise.all([1, 2, 3, 4].map(() => service.organization()));
  const searches = organizations.flatMap(({ token }) =>
    Array.from({ length: 25 }, (_, n) => service.search(token, { keyword: "garden pump" }, { api: n % 2 })),
  );
  await running(64);
  answer();
  const answers = await Promise.all(searches);
  expect(answers.map(({ status, body }) => [status, body.creditsCharged])).toEqual(answers.map(() => [200, 5]));
  expect(new Set(answers.map(({ body }) => JSON.stringify(body.results))).size).toBe(1);
  expect(new Set(answers.map(({ body }) => body.requestId)).size).toBe(100);
  expect(stub.requests).toHaveLength(1);
  for (const { token } of organizations) expect((await service.usage(token)).body.creditBalanceMils).toBe(875);
});

test("a target domain leaves only its results and those of its subdomains, with the ranks of the whole page", async () => {
  const links = ["https://a.example/", "https://www.b.example/", "https://notb.example/", "https://shop.b.example/x"];
  stub.otherwise = reply(200, { organic: links.map((link) => ({ title: link, link })) });
  const { token } = await service.organization();
  const { body } = await service.search(token, { keyword: "garden pump", targetDomain: "https://www.b.example/any" });
  expect(body.query.targetDomain).toBe("b.example");
  expect(body.results.map(({ rank, domain }: { rank: number; domain: string }) => [rank, domain])).toEqual([
    [2, "b.example"],
    [4, "shop.b.example"],
  ]);
});

test("a worker that is killed while it asks for others leaves the asking to them, and all are answered", async () => {
  const answer = holdAnswers();
  const { token } = await service.organization();
  const searches = Array.from({ length: 6 }, () => service.search(token, { keyword: "garden pump" }));
  await running(6);
  await service.until(async () => stub.requests.length === 1);
  service.workers[0]?.kill("SIGKILL");
  answer();
  expect((await Promise.all(searches)).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200]);
});

test("a caller who hangs up takes the answer from nobody else", async () => {
  const answer = holdAnswers();
  const { token, organizationId } = await service.organization();
  const gone = new AbortController();
  const first = service.search(token, { keyword: "garden pump" }, { signal: gone.signal }).catch(() => "gone");
  await service.until(async () => stub.requests.length === 1);
  const second = service.search(token, { keyword: "garden pump" });
  await running(2);
  gone.abort();
  expect(await first).toBe("gone");
  await service.until(async () => (await service.holdsOf(organizationId)).open === 1);
  answer();
  expect((await second).status).toBe(200);
  expect((await service.usage(token)).body.creditBalanceMils).toBe(995);
  expect(stub.requests).toHaveLength(1);
});
