import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { httpProviders } from "../harness/fixtures/provider-answers.ts";
import { undocumentedLosses } from "../harness/omissions/mapping-tables.ts";
import { providerAnswersPage } from "./provider-answers-page.ts";

const path = fileURLToPath(new URL("../../docs/operating/provider-answers.md", import.meta.url));

test("the page on providers' answers says of each field what it becomes", async () => {
  await expect(providerAnswersPage()).toMatchFileSnapshot(path);
});

test.each(httpProviders)(
  "every field of an answer of %s reaches the results, or is documented as left out",
  (provider) => {
    expect(undocumentedLosses(provider)).toEqual([]);
  },
);
