import { beforeAll, describe, expect, test } from "vitest";
import { openBrowser, visitor } from "../../harness/clients/browser.ts";
import { faultsOf } from "../../harness/clients/page-faults.ts";
import { withoutChromium } from "../../harness/clients/chromium.ts";
import type { Service } from "../../harness/processes/service.ts";
import { usualService } from "../../harness/processes/usual-stack.ts";

/** The page at `/`. */

const browsersAccept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

let service: Service;
beforeAll(async () => {
  service = await usualService();
});

test("a program gets the 404 of any unknown path at /", async () => {
  for (const accept of ["*/*", "application/json"]) {
    const answer = await service.send("/", { headers: { accept } });
    expect(answer).toMatchObject({ status: 404, body: { error: { code: "not_found" } } });
  }
});

test("a browser gets links that lead somewhere, and commands with the address that it came by", async () => {
  const page = await service.send("/", { headers: { accept: browsersAccept } });
  expect(page.status).toBe(200);
  expect(page.text).toContain(`curl -s ${service.apis[0]?.url}/v1/serp/search`);
  expect(page.text).toContain(`${service.apis[0]?.url}/mcp?names=plain`);
  const links = [...page.text.matchAll(/href="(\/[^"]*)"/g)].map(([, path = ""]) => path);
  expect(links).toEqual(expect.arrayContaining(["/docs", "/billing"]));
  for (const path of links)
    expect((await service.send(path, { headers: { accept: browsersAccept } })).status).toBe(200);
});

describe.skipIf(withoutChromium !== "")(`in Chromium${withoutChromium}`, () => {
  test.each([
    { width: 320, dark: true },
    { width: 1280, dark: false },
  ])("at $width px, dark $dark, nothing is too wide, foreign or a fault for axe", async ({ width, dark }) => {
    const origin = service.apis[0]?.url ?? "";
    const browser = await openBrowser();
    try {
      const person = await visitor(browser, [origin], { width, dark });
      const { page, foreign, complaints } = person;
      await page.goto(origin);
      expect(await faultsOf(person, "landing")).toEqual([]);
      expect({ foreign, complaints }).toEqual({ foreign: [], complaints: [] });
    } finally {
      await browser.close();
    }
  });
});
