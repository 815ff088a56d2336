import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { pythonPath, withoutPython } from "../harness/clients/python.ts";
import { Service } from "../harness/processes/service.ts";
import { cases, casesOfFetch, endOf, runCases, searchDeadlineMs } from "./conformance-cases.ts";

/** All clients keep the promises of `clients/conformance.json`, against a real API behind a proxy that does the faults. */

const python = [pythonPath, "-B", fileURLToPath(new URL("./conformance_driver.py", import.meta.url))];
const drivers = {
  TypeScript: [process.execPath, fileURLToPath(new URL("./conformance-driver.ts", import.meta.url))],
  Python: [...python, "sync"],
  asyncio: [...python, "async"],
};

const service = await Service.start({ environment: { SEARCH_DEADLINE_MS: String(searchDeadlineMs) }, end: afterAll });

const ready = Object.entries(drivers).map(([name, driver]) => {
  const isSkipped = name !== "TypeScript" && withoutPython !== "";
  const kept = name === "TypeScript" ? casesOfFetch : cases;
  return { name: name + (isSkipped ? withoutPython : ""), driver, kept, isSkipped };
});

describe.each(ready)("the $name client", ({ driver, kept, isSkipped }) => {
  let ended: Awaited<ReturnType<typeof runCases>>;
  beforeAll(async () => {
    ended = await runCases(service, driver);
  });

  test.skipIf(isSkipped).each(kept)("$promise", async (one) => {
    expect(await endOf(service, one, ended.get(one))).toEqual({ charges: one.expect.charges, uncounted: 0 });
  });
});

test("after all cases nothing is held, and the ledger agrees with itself", async () => {
  await service.rest();
  expect(await service.verify()).toMatchObject({ ok: true });
});
