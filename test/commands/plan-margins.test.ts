import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { readLine } from "../harness/clients/admin.ts";
import { Operator } from "../harness/processes/operator.ts";
import { Service } from "../harness/processes/service.ts";

/** Plans that sell searches for less than a provider takes. */

let service: Service;
beforeAll(async () => {
  service = await Service.start({ apis: 0, workers: 0 });
});
afterAll(() => service.stop());

test("a plan below what its providers take is named with the figures, and a provider without a price as unknown", async () => {
  const settings = { SERP_PROVIDERS: "serper,searxng", SERPER_BASE_URL: "http://127.0.0.1:1" };
  const { stdout } = await new Operator(service, settings).try("doctor");
  const { findings } = z.object({ findings: z.array(z.looseObject({ part: z.string() })) }).parse(readLine(stdout));
  const sold =
    "sells a search of depth 100 for 5 mils, but it costs 10 mils at serper; the plan loses money from depth 51 on";
  const advice = expect.stringContaining("--price-per-page or --max-depth");
  expect(findings.filter(({ part }) => part === "plans")).toEqual([
    { part: "plans", state: "warning", found: `plan free ${sold}`, advice },
    { part: "plans", state: "warning", found: `plan payg ${sold}`, advice },
    { part: "plans", state: "ok", found: "the cost of a search at searxng is unknown", advice: null },
  ]);
});

test("a plan that sells searches below what a provider takes is set, with the figures on stderr and in the result", async () => {
  const providers = { SERP_PROVIDERS: "serper,dataforseo,searxng", SERPER_API_KEY: "" };
  const setFor = async (...options: string[]) => {
    const args = ["plan", "set", "margin", ...options, "--limit", "1", "--window", "1", "--concurrency", "1"];
    const { exitCode, stdout, stderr } = await new Operator(service, providers).try(...args);
    return { exitCode, stderr, ...z.looseObject({ belowCost: z.array(z.unknown()) }).parse(readLine(stdout)) };
  };
  const unknown = "The cost of a search at searxng is unknown.\n";
  expect(await setFor("--price", "5")).toMatchObject({
    exitCode: 0,
    belowCost: [
      { provider: "serper", fromDepth: 51, depth: 100, priceMils: 5, costMils: 10 },
      { provider: "dataforseo", fromDepth: 31, depth: 100, priceMils: 5, costMils: 15.5 },
    ],
    unknownCost: ["searxng"],
    stderr:
      "Warning: plan margin sells a search of depth 100 for 5 mils, but it costs 10 mils at serper; the plan loses money from depth 51 on.\n" +
      "Warning: plan margin sells a search of depth 100 for 5 mils, but it costs 15.5 mils at dataforseo; the plan loses money from depth 31 on.\n" +
      unknown,
  });
  const [shallow] = (await setFor("--price", "5", "--max-depth", "35")).belowCost;
  expect(shallow).toMatchObject({ provider: "dataforseo", fromDepth: 31, depth: 35, costMils: 6.5 });
  expect(await setFor("--price-per-page", "2")).toMatchObject({ exitCode: 0, belowCost: [], stderr: unknown });
  expect(await setFor("--price", "0", "--operations", "usage.get")).toMatchObject({ belowCost: [], stderr: "" });
});
