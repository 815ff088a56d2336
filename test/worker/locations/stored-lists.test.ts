import { afterAll, expect, test } from "vitest";
import type { ListedLocation } from "../../../worker/locations/listed-location.ts";
import { findNamesakes, readStoredLists, storeList } from "../../../worker/locations/stored-lists.ts";
import { eventually } from "../../harness/assertions/eventually.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import { openFreshDatabase } from "../../harness/servers/open-database.ts";

const { database, url } = await openFreshDatabase(afterAll);

const onProgress = () => undefined;

function locationNamed(name: string, countryCode = "DE"): ListedLocation {
  return { name: `${name},Germany`, countryCode, folded: name.toLowerCase(), isMarket: false };
}

const many = (prefix: string) => Array.from({ length: 12_000 }, (_, number) => locationNamed(`${prefix} ${number}`));

async function namesOf(provider: string, firstPart: string): Promise<string[]> {
  const found = await findNamesakes(database, [provider], { countryCode: "DE", firstParts: [firstPart] });
  return found.map(({ name }) => name);
}

/** Whether a statement has waited longer than a search may wait for a lock. Only the owner sees it. */
async function isWaiting(): Promise<boolean> {
  const { rows } = await asOwner(
    url,
    `select from pg_stat_activity
       where datname = current_database() and wait_event_type = 'Lock' and query_start < now() - interval '2.2 s'`,
  );
  return rows.length > 0;
}

test("a refresh that is interrupted leaves the old list as it was, with its date", async () => {
  await storeList(database, "interrupted", { locations: many("Old"), onProgress });
  const before = await readStoredLists(database);
  const broken = [...many("New"), locationNamed("Broken", "no code")];
  const steps: number[] = [];
  const onStored = (stored: number) => void steps.push(stored);
  const refresh = storeList(database, "interrupted", { locations: broken, onProgress: onStored });
  await expect(refresh).rejects.toThrow("country_code_has_two_letters");
  expect(steps).toEqual([10_000]);
  expect(await readStoredLists(database)).toEqual(before);
  expect(await namesOf("interrupted", "old 11999")).toEqual(["Old 11999,Germany"]);
  expect(await namesOf("interrupted", "new 0")).toEqual([]);
});

test("while a list is replaced, searches find the old one, and all of the new one after that", async () => {
  await storeList(database, "replaced", { locations: [locationNamed("Old")], onProgress });
  const during: string[][] = [];
  const onStored = async () => void during.push(await namesOf("replaced", "old"));
  await storeList(database, "replaced", { locations: many("New"), onProgress: onStored });
  expect(during).toEqual([["Old,Germany"], ["Old,Germany"]]);
  expect(await namesOf("replaced", "old")).toEqual([]);
  expect(await namesOf("replaced", "new 11999")).toEqual(["New 11999,Germany"]);
});

test("two refreshes at the same time leave one whole list, also if the first takes longer than a search may wait", async () => {
  let second: Promise<unknown> | undefined;
  const onStored = async () => {
    second ??= storeList(database, "twice", { locations: many("Two"), onProgress });
    await Promise.race([second, eventually(isWaiting)]);
  };
  await storeList(database, "twice", { locations: many("One"), onProgress: onStored });
  await second;
  const { rows } = await database.query(
    "select split_part(folded, ' ', 1) as prefix, count(*) from locations where provider = 'twice' group by 1",
  );
  expect(rows).toMatchObject([{ count: 12_000 }]);
});

test("a name is found alone and before a comma, but not as the beginning of a longer word", async () => {
  const folded = ["ulm", "ulm,bavaria", "ulm 2", "ulm-x", "ulmen"];
  const locations = folded.map((each) => ({ ...locationNamed(each), folded: each }));
  await storeList(database, "words", { locations, onProgress });
  expect(await namesOf("words", "ulm")).toEqual(["ulm,Germany", "ulm,bavaria,Germany"]);
});
