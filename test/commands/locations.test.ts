import { afterAll, beforeEach, expect, test } from "vitest";
import { readLine } from "../harness/clients/admin.ts";
import { dataForSeoList, places, wholeList } from "../harness/fixtures/location-lists.ts";
import { Operator } from "../harness/processes/operator.ts";
import { Service } from "../harness/processes/service.ts";
import { type LocationStub, startLocationStub } from "../harness/stubs/location-stub.ts";
import { contractCases } from "../worker/providers/contract-cases.ts";

const service = await Service.start({ apis: 0, workers: 0, end: afterAll });
let stub: LocationStub;
beforeEach(async () => {
  stub = await startLocationStub({ dataforseo: contractCases.dataforseo.page, serpapi: contractCases.serpapi.page });
  await service.database.query("delete from location_lists");
  return () => stub.close();
});

const listed = wholeList().filter(([, countryCode, type]) => countryCode !== null && type !== "Country").length;
const isoTime = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
const listOf = (provider: string) => ({ provider, locations: listed, refreshedAt: isoTime, ageDays: 0 });

async function locations(args: string[], SERP_PROVIDERS = "serper,dataforseo,serpapi") {
  const operator = new Operator(service, { ...stub.settings, SERPER_API_KEY: "secret", SERP_PROVIDERS });
  const result = await operator.try("locations", ...args);
  expect(result.stdout + result.stderr).not.toContain("secret");
  return result;
}

async function storedNames(): Promise<string[]> {
  const { rows } = await service.database.query(
    "select name from locations where folded not like 'hamlet%' order by 1",
  );
  return rows.map(({ name }) => name);
}

test("a refresh replaces the whole list: places that the provider has dropped are gone", async () => {
  await locations(["refresh"], "dataforseo");
  expect(await storedNames()).toContain("Tokyo,Japan");
  stub.lists.dataforseo.body = dataForSeoList(wholeList(places.filter(([name]) => name !== "Tokyo,Japan")));
  expect(await locations(["refresh"], "dataforseo")).toMatchObject({ exitCode: 0 });
  const names = await storedNames();
  expect(names).toContain("Munich,Bavaria,Germany");
  expect(names).not.toContain("Tokyo,Japan");
});

test.each([
  ["an empty list", () => dataForSeoList([]), "returned 0 locations, which is not its whole list"],
  ["some rows", () => dataForSeoList(places), "returned 17 locations, which is not its whole list"],
  [
    "an answer that is cut off",
    () => JSON.stringify(dataForSeoList()).slice(0, -9),
    "incomplete, too large or not readable",
  ],
  ["fewer rows than it announces", () => dataForSeoList(wholeList(), { result_count: 9_999 }), "incomplete"],
  ["an error", () => ({ status_code: 40_100, status_message: "secret", tasks: null }), "rejects our account"],
])("after %s the old list stays, and the command says why and exits with 1", async (_, answer, problem) => {
  await locations(["refresh"], "dataforseo");
  const before = [await storedNames(), (await locations(["list"])).stdout];
  stub.lists.dataforseo.body = answer();
  const { exitCode, stdout, stderr } = await locations(["refresh"]);
  expect({ exitCode, result: readLine(stdout) }).toEqual({
    exitCode: 1,
    result: {
      lists: [listOf("serpapi")],
      failed: [{ provider: "dataforseo", problem: expect.stringContaining(problem) }],
    },
  });
  expect(stderr).toMatch(new RegExp(`dataforseo .*${problem}.*\\. The stored list was not changed\\.`));
  await locations(["remove", "serpapi"]);
  expect([await storedNames(), (await locations(["list"])).stdout]).toEqual(before);
});

test("a list that is much shorter than the stored one replaces it only with --accept-shorter", async () => {
  stub.lists.dataforseo.body = dataForSeoList([...wholeList(), ...wholeList(places).map(renamed)]);
  await locations(["refresh"], "dataforseo");
  stub.lists.dataforseo.body = dataForSeoList();
  const refused = await locations(["refresh"], "dataforseo");
  expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("add --accept-shorter to replace it") });
  expect(await locations(["refresh", "--accept-shorter"], "dataforseo")).toMatchObject({ exitCode: 0 });
  expect(readLine((await locations(["list"])).stdout)).toEqual({ lists: [listOf("dataforseo")] });
});

test("without a provider that publishes a list, refresh is refused", async () => {
  expect(await locations(["refresh"], "serper,sandbox")).toEqual({
    exitCode: 1,
    stdout: "",
    stderr: "No provider of SERP_PROVIDERS publishes a list of its locations.\n",
  });
});

function renamed([name, countryCode, type]: ReturnType<typeof wholeList>[number]) {
  return [`New ${name}`, countryCode, type] as const;
}
