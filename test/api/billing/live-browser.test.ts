import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openBrowser, signInAt, visitor } from "../../harness/clients/browser.ts";
import { withoutChromium } from "../../harness/clients/chromium.ts";
import { layoutShifts } from "../../harness/clients/layout-shift.ts";
import { aMonth, backdateLedger } from "../../harness/fixtures/backdate-ledger.ts";
import { type Organization, Service } from "../../harness/processes/service.ts";

/** What a person does on an open page while searches arrive on it. */

// Text, because it is evaluated in the page and uses browser globals that Node does not have.
const blur = "document.activeElement.blur()";

describe.skipIf(withoutChromium !== "")(`in Chromium${withoutChromium}`, () => {
  let service: Service;
  let browser: Browser;
  beforeAll(async () => {
    [service, browser] = await Promise.all([Service.start(), openBrowser()]);
  });
  afterAll(async () => {
    await browser?.close();
    await service?.stop();
  });

  /** An open overview of an organization with a month of searches, at a balance of $65.87. */
  async function overview(width = 1280): Promise<{ page: Page; organization: Organization }> {
    const organization = await service.organization({ creditMils: 0 });
    await backdateLedger(service.databaseUrl, organization.organizationId, aMonth(new Date()));
    const url = service.apis[0]?.url ?? "";
    const { page } = await visitor(browser, [url], { width });
    await signInAt(page, service, `${url}/billing`, organization.token);
    await page.locator("#live.on").waitFor();
    await page.locator("#credit[data-html]").waitFor();
    return { page, organization };
  }

  const latest = (page: Page, requestId: string) => page.locator(`#latest [href$="${requestId}"]`);
  const balance = (page: Page) => page.locator("#credit .figure").first();

  test.each([
    {
      what: "the selected text of a row stays selected",
      take: (page: Page) => page.locator("#latest code").nth(2).selectText(),
      taken: "getSelection().toString()",
      leave: "getSelection().removeAllRanges()",
    },
    {
      what: "the element with the keyboard focus keeps it",
      take: (page: Page) => page.getByRole("link", { name: "All searches" }).focus(),
      taken: "document.activeElement.textContent",
      leave: blur,
    },
  ])("$what while searches arrive, and its section follows afterwards", async ({ take, taken, leave }) => {
    const { page, organization } = await overview();
    await take(page);
    const [before, shown] = [await page.evaluate(taken), await balance(page).textContent()];
    const { body } = await service.search(organization.token, { keyword: "coffee" });
    await balance(page)
      .filter({ hasNotText: shown ?? "" })
      .waitFor();
    expect(before).not.toBe("");
    expect(await page.evaluate(taken)).toBe(before);
    expect(await latest(page, body.requestId).count()).toBe(0);
    await page.evaluate(leave);
    await latest(page, body.requestId).waitFor();
  });

  test("an opened table stays open and scrolled while searches arrive, and nothing on the page moves", async () => {
    const { page, organization } = await overview(320);
    await page.getByText("Show the numbers as a table").click();
    await page.evaluate(blur);
    const table = page.getByRole("region", { name: "Usage as a table" });
    const scrollLeft = () => table.evaluate((element) => element.scrollLeft);
    await table.evaluate((element) => void (element.scrollLeft = 20));
    expect(await scrollLeft()).toBe(20);
    const figure = page.locator("#usage figcaption strong");
    const before = await figure.textContent();
    await service.search(organization.token, { keyword: "coffee" });
    await figure.filter({ hasNotText: before ?? "" }).waitFor();
    expect(await scrollLeft()).toBe(20);
    expect(await layoutShifts(page)).toEqual([]);
  });
});
