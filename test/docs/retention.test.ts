import { expect, test } from "vitest";
import { keysOf } from "../../shared/credits/redis-keys.ts";
import { readSource, sources } from "../harness/assertions/sources.ts";

/** The page on retention, compared with the tables of Postgres and the keys that Redis has for an organization. */

const page = readSource("docs/operating/retention.md");
const isMissing = (name: string) => !page.includes(`\`${name}\``);

test("the page on retention has every table with data of organizations", () => {
  const ofAllOrganizations = new Set(["plans", "location_lists", "locations"]);
  const tables = sources("shared/database/migrations/*.sql").flatMap(({ text }) =>
    [...text.matchAll(/^create table (\w+) \(/gm)].map(([, name = ""]) => name),
  );
  expect(tables.length).toBeGreaterThan(20);
  expect(tables.filter((name) => isMissing(name) && !ofAllOrganizations.has(name))).toEqual([]);
});

test("the page on retention has every key of an organization in Redis", () => {
  const keys = Object.values(keysOf("org_…")).map((key) => (typeof key === "string" ? key : key("*")));
  expect(keys.filter(isMissing)).toEqual([]);
});
