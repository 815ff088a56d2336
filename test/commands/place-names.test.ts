import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { findOtherNames } from "../../worker/locations/place-names.ts";
import { readLine, runAdminHere } from "../harness/clients/admin.ts";
import { placeNamesArchive } from "../harness/fixtures/place-names.ts";
import { Service } from "../harness/processes/service.ts";
import { type LocationStub, startLocationStub } from "../harness/stubs/location-stub.ts";

let service: Service;
let stub: LocationStub;
beforeAll(async () => {
  service = await Service.start({ apis: 0, workers: 0 });
});
afterAll(() => service.stop());
beforeEach(async () => {
  stub = await startLocationStub({ dataforseo: {}, serpapi: {} });
  return () => stub.close();
});

const locations = (...args: string[]) =>
  runAdminHere(["locations", ...args], {
    DATABASE_URL: service.processDatabaseUrl,
    REDIS_URL: service.redisServer.url,
    SERP_PROVIDERS: "sandbox",
  });
const refreshNames = () => locations("refresh-names", "--url", stub.namesUrl);
const namesOf = (firstPart: string) => findOtherNames(service.database, { countryCode: "DE", firstPart });

test("refresh-names stores the names of cities in place of the old ones, and remove ends their use", async () => {
  const stored = {
    provider: "geonames",
    locations: 10_004,
    refreshedAt: expect.stringMatching(/^\d{4}-/),
    ageDays: 0,
  };
  const { exitCode, stdout, stderr } = await refreshNames();
  expect({ exitCode, result: readLine(stdout) }).toEqual({ exitCode: 0, result: stored });
  expect(stderr.split("\n").slice(0, 2)).toEqual([
    "geonames: fetching the names",
    expect.stringMatching(/^geonames: read 10004 cities with \d+ names$/),
  ]);
  expect(await namesOf("munchen")).toContain("munich");
  await refreshNames();
  expect((await namesOf("munchen")).filter((name) => name === "munich")).toHaveLength(1);
  expect(readLine((await locations("list")).stdout)).toEqual({ lists: [stored] });

  expect(readLine((await locations("remove", "geonames")).stdout)).toEqual({ provider: "geonames", removed: true });
  expect(await namesOf("munchen")).toEqual([]);
});

test("an answer that is not the whole file is refused with its reason, and the stored names stay", async () => {
  await refreshNames();
  const refusals: [typeof stub.names, string][] = [
    [{ status: 404, archive: new Uint8Array() }, "answered with status 404"],
    [{ status: 200, archive: Buffer.from("<html>") }, "returned a file that is incomplete, too large or not readable"],
    [{ status: 200, archive: placeNamesArchive().slice(0, -1_000) }, "returned a file that is incomplete, too large"],
    [{ status: 200, archive: placeNamesArchive("1\tUlm\n") }, "returned a file that is incomplete, too large"],
  ];
  for (const [answer, reason] of refusals) {
    Object.assign(stub.names, answer);
    const { exitCode, stdout, stderr } = await refreshNames();
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
    expect(stderr).toContain(reason);
    expect(stderr).toContain("The stored names were not changed.");
  }
  expect(await namesOf("munchen")).toContain("munich");
});
