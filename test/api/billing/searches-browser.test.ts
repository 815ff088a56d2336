import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openBrowser, visitor } from "../../harness/clients/browser.ts";
import { faultsOf } from "../../harness/clients/page-faults.ts";
import { withoutChromium } from "../../harness/clients/chromium.ts";
import { forgetSignIns } from "../../harness/clients/page-visitor.ts";
import { backdateLedger } from "../../harness/fixtures/backdate-ledger.ts";
import { type Organization, Service } from "../../harness/processes/service.ts";

const dayMs = 86_400_000;

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
      const person = await visitor(browser, [url], { width, script });
      const { page, foreign, complaints } = person;
      const organization = await service.organization();
      await service.search(organization.token, { keyword: "tea" });
      const requestId = await loggedSearch(organization);
      await forgetSignIns(service);
      await page.goto(`${url}/billing/searches`);
      await page.getByLabel("Token").fill(organization.token);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByLabel("Keyword or request ID").fill("COFFEE");
      await page.getByRole("button", { name: "Find" }).click();
      await page.waitForURL(/find=COFFEE/);
      expect(await page.locator(".history code").allTextContents()).toEqual([requestId]);
      expect(await faultsOf(person, "what was found")).toEqual([]);
      await page.getByRole("link", { name: "coffee beans" }).click();
      await page.getByRole("heading", { name: "Answer" }).waitFor();
      expect(await faultsOf(person, "one search")).toEqual([]);
      await page.getByText("JSON", { exact: true }).click();
      await page.getByText(`"requestId": "${requestId}"`).waitFor();
      expect(await faultsOf(person, "its answer as JSON")).toEqual([]);
      expect(foreign).toEqual([]);
      expect(complaints).toEqual([]);
    },
  );

  test.each([{ width: 1400 }, { width: 320 }])(
    "each day of the history is a group of rows with a heading of its own: width $width",
    async ({ width }) => {
      const url = service.apis[0]?.url ?? "";
      const person = await visitor(browser, [url], { width });
      const { page, complaints } = person;
      const organization = await service.organization({ creditMils: 0 });
      const now = Date.now();
      await backdateLedger(service.databaseUrl, organization.organizationId, [
        { at: new Date(now - 2 * dayMs), kind: "grant", mils: 1_234_567 },
        { at: new Date(now - dayMs), kind: "charge", mils: 5 },
        { at: new Date(now), kind: "refund", reason: "engine_error" },
      ]);
      await loggedSearch(organization);
      await forgetSignIns(service);
      await page.goto(`${url}/billing/searches`);
      await page.getByLabel("Token").fill(organization.token);
      await page.getByRole("button", { name: "Sign in" }).click();
      const headings = page.getByRole("table").getByRole("rowheader");
      expect(await headings.allTextContents()).toEqual([
        expect.stringContaining("Whole day: 2 searches, $0.005 net"),
        expect.stringContaining("Whole day: 1 search, $0.005 net"),
        expect.stringContaining("Whole day: 0 searches, $0.00 net"),
      ]);
      expect(await faultsOf(person, "days")).toEqual([]);
      expect(complaints).toEqual([]);
    },
  );
});
