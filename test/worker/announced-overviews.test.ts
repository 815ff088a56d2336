import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Exposition, seesWorkers } from "../harness/assertions/metrics.ts";
import { serpapiKey, succeededMetadata } from "../harness/fixtures/serpapi-page.ts";
import { Service } from "../harness/processes/service.ts";
import { listen, type Listening } from "../harness/stubs/listen.ts";

/** AI Overviews that a page only announces, from the second call to the caller's answer and the operator's bill. */

const page = {
  organic_results: [{ title: "Pumps", link: "https://pumps.example/" }],
  ai_overview: { page_token: "the token" },
};

const providers = [
  {
    provider: "serpapi",
    key: serpapiKey,
    callMicroUsd: 25_000,
    overview: { ai_overview: { text_blocks: [{ type: "paragraph", snippet: "A pump moves water." }] } },
  },
  {
    provider: "searchapi",
    key: "a-key",
    callMicroUsd: 4_000,
    overview: { text_blocks: [{ type: "paragraph", answer: "A pump moves water." }] },
  },
];

const service = await Service.start({ workers: 0 });
afterAll(() => service.stop());

describe.each(providers)("an overview that $provider announces", ({ provider, key, callMicroUsd, overview }) => {
  let stub: Listening;
  /** What each call has asked for. */
  let asked: string[] = [];
  /** The answer to the call for the overview. */
  let second: { status: number; parts: object };
  beforeAll(async () => {
    stub = await listen((request, response) => {
      const { searchParams } = new URL(request.url ?? "", "http://stub");
      const token = searchParams.get("page_token");
      asked.push(`${searchParams.get("engine")} ${token ?? searchParams.get("q")}`);
      const { status, parts } = token === null ? { status: 200, parts: page } : second;
      response.writeHead(status).end(JSON.stringify({ search_metadata: succeededMetadata, ...parts }));
    });
    const name = provider.toUpperCase();
    await service.startWorker({
      SERP_PROVIDERS: provider,
      [`${name}_API_KEY`]: key,
      [`${name}_BASE_URL`]: stub.url,
      [`${name}_AI_OVERVIEW`]: "on",
    });
    await Promise.all(service.apis.map((api) => service.until(() => seesWorkers(api))));
  });
  afterAll(async () => {
    await Promise.all(service.workers.splice(0).map((worker) => worker.stop()));
    await stub.close();
  });

  /** Searches, and reads what the calls have added to the worker's metrics. */
  async function search(keyword: string) {
    asked = [];
    const { organizationId, token } = await service.organization({ creditMils: 100 });
    const before = await metrics();
    const { status, body } = await service.search(token, { keyword });
    await service.rest(organizationId);
    const after = await metrics();
    const charges = (await service.ledgerOf(organizationId)).filter(({ kind }) => kind === "charge");
    return {
      status,
      overviews: body.results.filter(({ type }: { type: string }) => type === "ai_overview"),
      calls: after.calls - before.calls,
      costMicroUsd: after.costMicroUsd - before.costMicroUsd,
      charged: charges.map(({ mils }) => mils),
    };
  }

  async function metrics() {
    const [worker] = service.workers;
    if (!worker) throw new Error("there is no worker");
    const found = await Exposition.of(worker);
    const sum = (metric: string) => Object.values(found.all(metric)).reduce((one, other) => one + other, 0);
    return { calls: sum("provider_calls_total"), costMicroUsd: sum("provider_cost_micro_usd_total") };
  }

  test("reaches the caller for the usual price, and both calls count as the operator's cost", async () => {
    second = { status: 200, parts: overview };
    expect(await search(`garden pump at ${provider}`)).toMatchObject({
      status: 200,
      overviews: [{ type: "ai_overview", description: "A pump moves water." }],
      calls: 2,
      costMicroUsd: 2 * callMicroUsd,
      charged: [-5],
    });
    expect(asked).toEqual([`google garden pump at ${provider}`, "google_ai_overview the token"]);
  });

  test("stays without text if the second call is refused, and the operator pays for one", async () => {
    second = { status: 400, parts: { error: "This token has expired." } };
    expect(await search(`pond pump at ${provider}`)).toMatchObject({
      status: 200,
      overviews: [{ type: "ai_overview", description: "" }],
      calls: 2,
      costMicroUsd: callMicroUsd,
      charged: [-5],
    });
  });
});
