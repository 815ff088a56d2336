import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { helpHeadingOf, helpPathOf } from "../../../api/http/send-error.ts";
import { axeFindings, openBrowser, visitor } from "../../harness/clients/browser.ts";
import { withoutChromium } from "../../harness/clients/chromium.ts";
import type { Service } from "../../harness/processes/service.ts";
import { usualService } from "../../harness/processes/usual-stack.ts";

/** The API reference in a browser. */

let service: Service;
beforeAll(async () => {
  service = await usualService();
});

describe.skipIf(withoutChromium !== "")(`in Chromium${withoutChromium}`, () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser.close());

  test.each([
    { width: 390, dark: true },
    { width: 1280, dark: false },
  ])(
    "an operation is read at $width px, dark $dark: no data leaves the origin or is stored, and axe finds no fault",
    async ({ width, dark }) => {
      const origin = service.apis[0]?.url ?? "";
      const { page, foreign, complaints } = await visitor(browser, [origin], { width, dark });
      await page.goto(`${origin}/docs#tag/search`);
      await page.getByText(`${origin}/v1/serp/search`).first().waitFor();
      expect(await axeFindings(page)).toEqual([]);
      expect(await pageOf(page)).toEqual({ isTooWide: false, isDark: dark });
      // A search is tried on the playground: Scalar's own dialog has faults for axe.
      expect(await page.getByRole("button", { name: "Test Request" }).count()).toBe(0);
      expect(await page.locator('#reference a[href="/playground"]').count()).toBe(1);

      expect({ foreign, complaints }).toEqual({ foreign: [], complaints: [] });
      expect(await kept(page)).toMatchObject({ session: {}, cookie: "" });
      expect(await page.context().cookies()).toEqual([]);
      await page.close();
    },
  );

  test("a reader finds an operation by the sidebar and by search, sees code in three languages, and the way to the account", async () => {
    const origin = service.apis[0]?.url ?? "";
    const { page } = await visitor(browser, [origin]);
    await page.goto(`${origin}/docs`);
    const sidebar = page.getByRole("complementary", { name: "Sidebar for Serpmill" });
    await sidebar.getByRole("link", { name: "Search Google" }).waitFor();
    for (const href of ["/billing", "/#agents", "/"]) {
      expect(await page.getByRole("navigation", { name: "Site" }).locator(`a[href="${href}"]`).count()).toBe(1);
    }

    await page.getByRole("button", { name: "Open Search" }).first().click();
    await page.keyboard.type("balance");
    const found = page.getByRole("option", { name: "Read the balance" });
    await found.waitFor();
    await found.click();
    const codeWith = (text: string) => page.locator("pre", { hasText: text }).first().waitFor();
    await codeWith(`--retry 3 ${origin}/v1/usage`);
    await page.getByRole("button", { name: "curl" }).last().click();
    expect(await page.getByRole("option").allInnerTexts()).toEqual(["curl", "JavaScript", "Python"]);
    await page.getByRole("option", { name: "JavaScript" }).click();
    await codeWith(`fetch("${origin}/v1/usage"`);
    await page.close();
  });

  test("the page says so if the reference did not load", async () => {
    const origin = service.apis[0]?.url ?? "";
    const { page } = await visitor(browser, [origin]);
    await page.route("**/openapi.json", (route) => route.fulfill({ status: 503, body: "no server is available" }));
    await page.goto(`${origin}/docs`);
    expect(await page.getByRole("alert").textContent()).toBe("The reference did not load. Reload the page.");
    await page.close();
  });

  test.each(["429", "retry"])(
    "the search for %s finds the section of an error, where the link of its answer leads",
    async (words) => {
      const origin = service.apis[0]?.url ?? "";
      const { page } = await visitor(browser, [origin]);
      await page.goto(`${origin}${helpPathOf("rate_limited")}`);
      const heading = page.getByRole("heading", { name: helpHeadingOf("rate_limited") });
      await heading.waitFor();
      await page.waitForFunction(
        `Math.abs(document.querySelector("[id$='${helpPathOf("rate_limited").split("#")[1]}']")?.getBoundingClientRect().top) < innerHeight`,
      );

      await page.getByRole("button", { name: "Open Search" }).first().click();
      await page.keyboard.type(words);
      const found = page.getByRole("option", { name: helpHeadingOf("rate_limited") });
      await found.waitFor();
      expect(await found.count()).toBe(1);
      await page.close();
    },
  );

  test("the search for retry leads to what may be repeated", async () => {
    const origin = service.apis[0]?.url ?? "";
    const { page } = await visitor(browser, [origin]);
    await page.goto(`${origin}/docs`);
    await page.getByRole("button", { name: "Open Search" }).first().click();
    await page.keyboard.type("retry");
    await page.getByRole("option", { name: "Retry safely" }).click();
    await page.waitForURL(`${origin}/docs#description/retry-safely`);
    await page.getByRole("heading", { name: "Retry safely" }).waitFor();
    expect(await page.getByText("Wait 35 s for an answer").isVisible()).toBe(true);
    await page.close();
  });
});

// Text, because it is evaluated in the page and uses browser globals that Node does not have.
const kept = (page: Page) =>
  page.evaluate("({ local: { ...localStorage }, session: { ...sessionStorage }, cookie: document.cookie })");

const pageOf = (page: Page) =>
  page.evaluate(`({
    isTooWide: document.documentElement.scrollWidth > innerWidth,
    isDark: document.body.classList.contains("dark-mode"),
  })`);
