import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { axeFindings, openBrowser, visitor } from "../../harness/clients/browser.ts";
import { withoutChromium } from "../../harness/clients/chromium.ts";
import { forgetSignIns } from "../../harness/clients/page-visitor.ts";
import { type Organization, Service } from "../../harness/processes/service.ts";

describe.skipIf(withoutChromium !== "")(`in Chromium${withoutChromium}`, () => {
  let service: Service;
  let browser: Browser;
  beforeAll(async () => {
    service = await Service.start();
    browser = await openBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await service?.stop();
  });

  /** A search under a key, once the search log has it. */
  async function loggedSearch({ token }: Organization): Promise<string> {
    const asked = { keyword: "coffee beans of the highest quality", location: "Munich, Germany", device: "mobile" };
    const { body } = await service.search(token, asked, { key: "one" });
    await service.until(async () => {
      const { rows } = await service.database.query("select from search_log where request_id = $1", [body.requestId]);
      return rows.length === 1;
    });
    return body.requestId;
  }

  test.each([
    { script: true, width: 1400 },
    { script: true, width: 320 },
    { script: false, width: 320 },
  ])(
    "a person finds a search by keyword and opens its answer: script $script, width $width",
    async ({ script, width }) => {
      const url = service.apis[0]?.url ?? "";
      const { page, foreign, complaints } = await visitor(browser, [url], { width, script });
      const organization = await service.organization();
      await service.search(organization.token, { keyword: "tea" });
      const requestId = await loggedSearch(organization);
      await forgetSignIns(service);
      const check = async (state: string) => {
        const wide = await page.locator("html").evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth);
        // Without scripts in the page axe cannot run.
        const findings = script ? await axeFindings(page) : [];
        expect({ state, findings, wide }).toEqual({ state, findings: [], wide: 0 });
      };
      await page.goto(`${url}/billing/searches`);
      await page.getByLabel("Token").fill(organization.token);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByLabel("Keyword or request ID").fill("COFFEE");
      await page.getByRole("button", { name: "Find" }).click();
      await page.waitForURL(/find=COFFEE/);
      expect(await page.locator(".history code").allTextContents()).toEqual([requestId]);
      await check("what was found");
      await page.getByRole("link", { name: "coffee beans" }).click();
      await page.getByRole("heading", { name: "Answer" }).waitFor();
      await check("one search");
      await page.getByText("JSON", { exact: true }).click();
      await page.getByText(`"requestId": "${requestId}"`).waitFor();
      await check("its answer as JSON");
      expect(foreign).toEqual([]);
      expect(complaints).toEqual([]);
    },
  );
});
