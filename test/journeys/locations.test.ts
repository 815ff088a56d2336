import { afterAll, expect, test } from "vitest";
import { errorBodySchemas } from "../../api/error-schemas.ts";
import { Exposition } from "../harness/assertions/metrics.ts";
import { Agent } from "../harness/clients/agent.ts";
import { Operator } from "../harness/processes/operator.ts";
import { Service } from "../harness/processes/service.ts";
import { startLocationStub } from "../harness/stubs/location-stub.ts";
import { contractCases } from "../worker/providers/contract-cases.ts";

const stub = await startLocationStub({
  dataforseo: contractCases.dataforseo.page,
  serpapi: contractCases.serpapi.page,
});
const settings = { ...stub.settings, SERP_PROVIDERS: "dataforseo" };
const service = await Service.start({ environment: settings });
const operator = new Operator(service, settings);
afterAll(async () => {
  await service.stop();
  await stub.close();
});

/** Refreshes the list and waits until the worker follows. */
async function refresh(): Promise<void> {
  const { exitCode } = await operator.try("locations", "refresh");
  expect(exitCode).toBe(0);
  const series = 'location_list_refreshed_timestamp_seconds{provider="dataforseo"}';
  const [worker] = service.workers;
  await service.until(async () => worker !== undefined && (await Exposition.of(worker)).value(series) !== undefined);
}

test("after a refresh, cities are searched by their names in the provider's list, and none of two is guessed", async () => {
  const { organizationId, token } = await service.organization({ creditMils: 1_000 });
  const search = (location: string) => service.search(token, { keyword: "coffee", location });
  const locationOf = async (location: string) => (await search(location)).body.query.location;

  expect(await locationOf("munich, Germany")).toBe("munich,Germany");
  expect(stub.searched.splice(0)).toEqual(["dataforseo munich,Germany"]);

  // Without a list, the service's own cities decide.
  expect(await locationOf("Wilmington, DE")).toBe("Wilmington,Delaware,United States");
  expect(stub.searched.splice(0)).toEqual(["dataforseo Wilmington,Delaware,United States"]);
  const unheardOf = await search("Boston, Germany");
  expect(errorBodySchemas[400].parse(unheardOf.body).error).toMatchObject({
    code: "query_rejected",
    details: { reason: "location_unknown", candidates: { 0: "Boston,Massachusetts,United States" } },
  });
  expect(stub.searched).toEqual([]);

  await refresh();
  // The answer says what was asked for, and the provider gets its own name for it.
  expect(await locationOf("munich, Germany")).toBe("munich,Germany");
  expect(await locationOf("London, United Kingdom")).toBe("London,United Kingdom");
  expect(await locationOf("Germany")).toBe("Germany");
  expect(stub.searched.splice(0)).toEqual([
    "dataforseo Munich,Bavaria,Germany",
    "dataforseo London,England,United Kingdom",
    "dataforseo 2276",
  ]);

  const ambiguous = await search("Springfield, United States");
  expect(errorBodySchemas[400].parse(ambiguous.body).error.details).toMatchObject({ reason: "location_ambiguous" });
  const agent = await Agent.connect(service, token);
  const refused = await agent.call("serp.search", { keyword: "coffee", location: "Springfield, United States" });
  await agent.close();
  const nextStep = expect.stringContaining("`error.details.candidates`");
  expect(refused.body.error).toEqual({ ...ambiguous.body.error, nextStep });
  expect(stub.searched).toEqual([]);

  await service.rest();
  const charges = (await service.ledgerOf(organizationId)).filter(({ kind }) => kind === "charge");
  expect(charges).toHaveLength(5);
  expect((await service.usage(token)).body.creditBalanceMils).toBe(975);
  expect(await service.verify()).toMatchObject({ ok: true, violations: [] });
});

test("a name in another language is the city of the provider's list, and none of two is guessed", async () => {
  const { token } = await service.organization({ creditMils: 1_000 });
  const search = (location: string) => service.search(token, { keyword: "coffee", location });
  await refresh();
  stub.searched.length = 0;
  for (const location of ["Мюнхен, Germany", "München, Bavaria, Germany", "東京, Japan"])
    expect(await search(location)).toMatchObject({ status: 200 });
  expect(stub.searched).toEqual([
    "dataforseo Munich,Bavaria,Germany",
    "dataforseo Munich,Bavaria,Germany",
    "dataforseo Tokyo,Japan",
  ]);

  expect(await search("スプリングフィールド, United States")).toMatchObject({
    status: 400,
    body: { error: { details: { reason: "location_ambiguous", candidates: { length: 3 } } } },
  });
});
