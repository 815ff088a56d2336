import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { issueToken } from "../../../api/tokens/tokens.ts";
import { axeFindings, openBrowser, visitor } from "../../harness/clients/browser.ts";
import { withoutChromium } from "../../harness/clients/chromium.ts";
import { forgetSignIns } from "../../harness/clients/page-visitor.ts";
import { aMonth, backdateLedger } from "../../harness/fixtures/backdate-ledger.ts";
import { Service } from "../../harness/processes/service.ts";

describe.skipIf(withoutChromium !== "")(`in Chromium${withoutChromium}`, () => {
  let service: Service;
  let browser: Browser;
  let url: string;
  beforeAll(async () => {
    service = await Service.start();
    browser = await openBrowser();
    url = service.apis[0]?.url ?? "";
  });
  afterAll(async () => {
    await browser?.close();
    await service?.stop();
  });

  test.each([
    { script: true, width: 320 },
    { script: false, width: 1280 },
  ])(
    "a person chooses a token for the chart by keyboard, and switches to its latency: script $script, width $width",
    async ({ script, width }) => {
      const { page, foreign, complaints } = await visitor(browser, [url], { script, width });
      const organization = await service.organization({ creditMils: 0 });
      await backdateLedger(service.databaseUrl, organization.organizationId, aMonth(new Date()));
      const other = await issueToken(service.database, organization.organizationId, { name: "shop" });
      await service.search(other?.token ?? "", { keyword: "coffee" });
      await service.until(async () => {
        const { rows } = await service.database.query("select from search_log where token_id = $1", [other?.tokenId]);
        return rows.length === 1;
      });
      await forgetSignIns(service);
      await page.goto(`${url}/billing`);
      await page.getByLabel("Token").fill(organization.token);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByLabel("Usage of").focus();
      await page.keyboard.type("shop");
      await page.keyboard.press("Tab");
      await page.keyboard.press("Enter");
      await page.waitForURL(/token=tok_/);
      const usage = page.getByRole("region", { name: "Usage", exact: true });
      const days = usage.locator(".day");
      expect(await days.last().getAttribute("aria-label")).toMatch(/: 1 search, 0 not charged$/);
      await page.getByRole("link", { name: "Latency" }).click();
      await page.waitForURL(/measure=latency/);
      expect(await days.last().getAttribute("aria-label")).toMatch(/: median .* of 1 search$/);
      expect(await days.first().getAttribute("aria-label")).toMatch(/: no durations$/);
      await usage.getByText("Show the numbers as a table").click();
      expect(await usage.getByRole("columnheader", { name: "95th percentile" }).count()).toBe(1);
      const wide = await page.locator("html").evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth);
      expect({ findings: script ? await axeFindings(page) : [], wide }).toEqual({ findings: [], wide: 0 });
      expect({ foreign, complaints }).toEqual({ foreign: [], complaints: [] });
    },
  );
});
