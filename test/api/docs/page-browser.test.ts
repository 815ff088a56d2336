import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { helpHeadingOf, helpPathOf } from "../../../api/http/send-error.ts";
import { axeFindings, openBrowser, visitor } from "../../harness/clients/browser.ts";
import { withoutChromium } from "../../harness/clients/chromium.ts";
import { usualService } from "../../harness/processes/usual-stack.ts";

/** The API reference in a browser. */

let origin: string;
beforeAll(async () => {
  origin = (await usualService()).apis[0]?.url ?? "";
});

describe.skipIf(withoutChromium !== "")(`in Chromium${withoutChromium}`, () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser.close());

  async function openAt(path: string, looks: Parameters<typeof visitor>[2] = {}) {
    const person = await visitor(browser, [origin], looks);
    onTestFinished(() => person.context.close());
    await person.page.goto(origin + path);
    return person;
  }

  test.each([
    { width: 390, dark: true },
    { width: 1280, dark: false },
  ])(
    "an operation is read at $width px, dark $dark: no data leaves the origin or is stored, and axe finds no fault",
    async ({ width, dark }) => {
      const { page, foreign, complaints } = await openAt("/docs#tag/search", { width, dark });
      await page.getByText(`${origin}/v1/serp/search`).first().waitFor();
      expect(await axeFindings(page)).toEqual([]);
      expect(await pageOf(page)).toEqual({ isTooWide: false, isDark: dark });
      // A search is tried on the playground: Scalar's own dialog has faults for axe.
      expect(await page.getByRole("button", { name: "Test Request" }).count()).toBe(0);
      expect(await page.locator('#reference a[href="/playground"]').count()).toBe(1);

      expect({ foreign, complaints }).toEqual({ foreign: [], complaints: [] });
      expect(await kept(page)).toMatchObject({ session: {}, cookie: "" });
      expect(await page.context().cookies()).toEqual([]);
    },
  );

  test("a reader finds an operation by the sidebar and by search, sees code in three languages, and the way to the account", async () => {
    const { page } = await openAt("/docs");
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
  });

  test("the page says so if the reference did not load", async () => {
    const { page } = await openAt("/");
    await page.route("**/openapi.json", (route) => route.fulfill({ status: 503, body: "no server is available" }));
    await page.goto(`${origin}/docs`);
    expect(await page.getByRole("alert").textContent()).toBe("The reference did not load. Reload the page.");
  });

  test.each(["429", "retry"])(
    "the search for %s finds the section of an error, where the link of its answer leads",
    async (words) => {
      const { page } = await openAt(helpPathOf("rate_limited"));
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
    },
  );

  test("the search for retry leads to what may be repeated", async () => {
    const { page } = await openAt("/docs");
    await page.getByRole("button", { name: "Open Search" }).first().click();
    await page.keyboard.type("retry");
    await page.getByRole("option", { name: "Retry safely" }).click();
    await page.waitForURL(`${origin}/docs#description/retry-safely`);
    await page.getByRole("heading", { name: "Retry safely" }).waitFor();
    expect(await page.getByText("Wait 35 s for an answer").isVisible()).toBe(true);
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
