import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { readSource } from "../harness/assertions/sources.ts";
import { withComputedTables } from "./sizing.ts";

const path = "docs/operating/sizing.md";

/** After a new measurement, `npx vitest run test/docs/sizing.test.ts -u` writes the tables anew. */
test("the tables of the page on sizing follow from the benchmarks and from the limits that are shipped", async () => {
  await expect(withComputedTables(readSource(path))).toMatchFileSnapshot(
    fileURLToPath(new URL(`../../${path}`, import.meta.url)),
  );
});
