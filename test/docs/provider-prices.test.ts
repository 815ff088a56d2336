import { expect, test } from "vitest";
import { prices, searchCostMicroUsd } from "../../worker/providers/prices.ts";
import { openProvider } from "../../worker/providers/registry.ts";
import { pagesOf } from "../../shared/query/depth.ts";
import { httpProviders } from "../harness/fixtures/provider-answers.ts";
import { engineConfig } from "../harness/fixtures/queries.ts";
import { contractCases } from "../worker/providers/contract-cases.ts";
import { codesIn, page, tableRows } from "./markdown.ts";

const providers = page("docs/operating/providers.md");
const priced = httpProviders.filter((name) => prices[name] !== undefined);

/** What one page costs in millionths of a USD, by the adapter's reading of an answer. */
function readPageMicroUsd(name: (typeof priced)[number]): number {
  const { settings, page: answer } = contractCases[name];
  const read = openProvider(name, engineConfig(settings)).read({
    status: 200,
    headers: {},
    body: JSON.stringify(answer),
  });
  if ("failure" in read) throw new Error(`the answer of ${name} is unreadable`);
  return read.costMicroUsd;
}

test.each(priced)("a page of %s costs what its adapter reads from an answer", (name) => {
  expect(searchCostMicroUsd(name, 1)).toBe(readPageMicroUsd(name));
});

test("the margin of each provider and depth follows from its price, and the default price of a search", () => {
  const plan = tableRows(page("docs/api.md"), "plan").find((row) => codesIn(row.plan)[0] === "payg");
  const priceMils = Number.parseInt(plan?.["price of a search"] ?? "", 10);
  const expected = priced.flatMap((name) =>
    [10, 30, 100].map((depth) => {
      const pages = pagesOf(depth);
      const atOnce = contractCases[name].isWholeDepthAtOnce === true;
      const cost = (searchCostMicroUsd(name, pages) ?? 0) / 1_000;
      const margins = [priceMils - cost, priceMils * pages - cost];
      return [`\`${name}\``, ...[depth, atOnce ? 1 : pages, cost, ...margins].map(String)];
    }),
  );
  const documented = tableRows(providers, "priced at").map((row) => Object.values(row));
  expect(new Set(documented)).toEqual(new Set(expected));
});

test("the time-out of a provider's calls is that of its adapter", () => {
  const documented = tableRows(providers, "provider").flatMap((row) => {
    const seconds = row["time-out of a call"];
    return seconds === undefined ? [] : [[codesIn(row.provider)[0], seconds]];
  });
  const declared = httpProviders.map((name) => {
    const { callTimeoutMs } = openProvider(name, engineConfig(contractCases[name].settings));
    return [name, `${callTimeoutMs / 1_000} s`];
  });
  expect(Object.fromEntries(documented)).toEqual(Object.fromEntries(declared));
});
