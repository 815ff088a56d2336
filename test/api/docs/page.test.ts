import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { axeFindings, openBrowser, visitor } from "../../harness/clients/browser.ts";
import { withoutChromium } from "../../harness/clients/chromium.ts";
import type { Service } from "../../harness/processes/service.ts";
import { usualService } from "../../harness/processes/usual-stack.ts";

/** The API reference in a browser, and its caching headers. */

let service: Service;
beforeAll(async () => {
  service = await usualService();
});

test("the document needs no token, may be cached for a short time, and forbids sniffing", async () => {
  const { status, headers, body } = await service.send("/openapi.json");
  expect({ status, openapi: body.openapi }).toEqual({ status: 200, openapi: "3.1.1" });
  expect(headers.get("content-type")).toBe("application/json; charset=utf-8");
  expect(headers.get("cache-control")).toBe("public, max-age=300");
  expect(headers.get("x-content-type-options")).toBe("nosniff");
  expect(headers.get("x-request-id")).toMatch(/^req_/);
  expect(headers.get("access-control-allow-origin")).toBeNull();
  expect(await service.send("/openapi.json", { method: "POST" })).toMatchObject({ status: 405 });
});

test("the page's files are immutable under their versioned address only; the page is revalidated", async () => {
  const page = await service.send("/docs");
  expect(page.headers.get("cache-control")).toBe("no-cache");
  const files = [...page.text.matchAll(/(?:src|href)="(\/docs\/[^"]+)"/g)].map(([, address = ""]) => address);
  expect(files).toHaveLength(3);
  for (const address of files) {
    const { status, headers } = await service.send(address);
    expect({ status, kept: headers.get("cache-control") }).toEqual({
      status: 200,
      kept: "public, max-age=31536000, immutable",
    });
    const older = await service.send(address.replace(/v=.*/, "v=older"));
    expect(older.headers.get("cache-control")).toBe("no-cache");
    const unpacked = await service.send(address, { headers: { "accept-encoding": "identity" } });
    expect(unpacked.headers.get("content-encoding")).toBeNull();
    expect(unpacked.text).toBe((await service.send(address)).text);
  }
});

test("every file of the page has a policy that forbids other scripts, frames and requests", async () => {
  for (const path of ["/docs", "/docs/page.js", "/docs/page.css"]) {
    const { headers } = await service.send(path);
    expect(headers.get("content-security-policy")?.split("; ").toSorted()).toEqual([
      "base-uri 'none'",
      "connect-src 'self'",
      "default-src 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
      "img-src 'self' data:",
      "script-src 'self'",
      "style-src 'self' 'unsafe-inline'",
    ]);
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("referrer-policy")).toBe("no-referrer");
    expect(headers.get("x-frame-options")).toBe("DENY");
  }
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
      await page.getByText(`curl ${origin}/v1/serp/search`).first().waitFor();
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
    expect(await page.getByRole("tab").allInnerTexts()).toEqual(["Shell", "Node.js", "Python"]);
    for (const href of ["/billing", "/#agents", "/"]) {
      expect(await page.getByRole("navigation", { name: "Site" }).locator(`a[href="${href}"]`).count()).toBe(1);
    }

    await page.getByRole("button", { name: "Open Search" }).first().click();
    await page.keyboard.type("balance");
    const found = page.getByRole("option", { name: "Read the balance" });
    await found.waitFor();
    await found.click();
    const code = page.locator("pre", { hasText: `curl ${origin}/v1/usage` });
    await code.waitFor();
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
