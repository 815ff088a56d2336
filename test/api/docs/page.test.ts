import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { searchResponseBody } from "../../../shared/search-answer.ts";
import { axeFindings, openBrowser, visitor } from "../../harness/clients/browser.ts";
import { withoutChromium } from "../../harness/clients/chromium.ts";
import { type Organization, Service } from "../../harness/processes/service.ts";

/** The API reference in a browser, and its caching headers. */

let service: Service;
let organization: Organization;
beforeAll(async () => {
  service = await Service.start();
  organization = await service.organization({ creditMils: 100 });
});
afterAll(() => service.stop());

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
  expect(files).toHaveLength(4);
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
      "style-src 'self'",
    ]);
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("referrer-policy")).toBe("no-referrer");
    expect(headers.get("x-frame-options")).toBe("DENY");
  }
});

describe.skipIf(withoutChromium !== "")(`in Chromium${withoutChromium}`, () => {
  test.each([
    { width: 390, dark: true },
    { width: 1280, dark: false },
  ])(
    "a search is tried at $width px, dark $dark; no data leaves the origin or is stored, and axe finds no fault of this page",
    async ({ width, dark }) => {
      const origin = service.apis[0]?.url ?? "";
      const browser = await openBrowser();
      try {
        const { page, foreign, complaints } = await visitor(browser, [origin], { width, dark });
        await page.goto(`${origin}/docs`);
        const answer = await trySearch(page, organization.token);
        expect(searchResponseBody.parse(answer).results.length).toBeGreaterThan(9);

        expect({ foreign, complaints }).toEqual({ foreign: [], complaints: [] });
        expect(await kept(page)).toEqual({ local: 0, session: 0, cookie: "" });
        expect(await page.context().cookies()).toEqual([]);
        expect(await pageOf(page)).toEqual({ isTooWide: false, isDark: dark });
        expect(await axeFindings(page, ofSwaggerUi)).toEqual([]);
        await page.reload();
        await page.locator(".authorize.unlocked").first().waitFor();
      } finally {
        await browser.close();
      }
    },
  );
});

/** axe rules that Swagger UI itself breaks, with its landmarks and nested buttons. */
const ofSwaggerUi = ["nested-interactive", "landmark-unique", "region"];

/** Pastes a token and presses Execute, as a reader does. @returns the body of the answer. */
async function trySearch(page: Page, token: string): Promise<unknown> {
  await page.locator(".btn.authorize").first().click();
  await page.locator(".auth-container input").fill(token);
  await page.locator(".auth-btn-wrapper .authorize").click();
  await page.locator(".auth-btn-wrapper .btn-done").click();
  const search = page.locator("#operations-Search-search");
  const answered = page.waitForResponse((response) => response.url().endsWith("/v1/serp/search"));
  await search.locator(".execute").click();
  const shown = search.locator(".live-responses-table tbody");
  expect((await shown.locator(".response-col_status").innerText()).trim()).toMatch(/^200/);
  expect(await shown.locator(".response-col_description").innerText()).toContain('"creditsCharged": 5');
  return (await answered).json();
}

// Text, because it is evaluated in the page and uses browser globals that Node does not have.
const kept = (page: Page) =>
  page.evaluate("({ local: localStorage.length, session: sessionStorage.length, cookie: document.cookie })");

const pageOf = (page: Page) =>
  page.evaluate(`({
    isTooWide: document.documentElement.scrollWidth > innerWidth,
    isDark: document.documentElement.classList.contains("dark-mode"),
  })`);
