import { afterAll, expect, test } from "vitest";
import { toListedLocation } from "../../../worker/locations/listed-location.ts";
import { SimilarNames } from "../../../worker/locations/find-location.ts";
import { storeList } from "../../../worker/locations/stored-lists.ts";
import { openFreshDatabase } from "../../harness/servers/open-database.ts";

/** Refusals of unknown places are free, so what they cost a worker is bounded. */

const { database } = await openFreshDatabase(afterAll);
const munich = toListedLocation({ name: "Munich,Bavaria,Germany", countryCode: "DE", type: "City" });
await storeList(database, "dataforseo", { locations: munich ? [munich] : [], onProgress: () => undefined });

test("while names are compared, and for a while after that, no others are", async () => {
  const similar = new SimilarNames(database);
  const find = () => similar.find(["dataforseo"], { countryCode: "DE", firstPart: "munnich" });
  expect(await Promise.all([find(), find(), find()])).toEqual([["munich"], undefined, undefined]);
  await expect.poll(find).toEqual(["munich"]);
});

test("a comparison that fails does not keep later ones from taking place", async () => {
  const similar = new SimilarNames(database);
  const find = (firstPart: string) => similar.find(["dataforseo"], { countryCode: "DE", firstPart });
  await expect(find("\0")).rejects.toThrow("invalid byte sequence");
  await expect.poll(() => find("munnich")).toEqual(["munich"]);
});
