import { expect, test } from "vitest";
import { usualService } from "../../harness/processes/usual-stack.ts";

/** The files of the API reference and their headers. */

const service = await usualService();

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

test("search engines may list the reference", async () => {
  const { text, headers } = await service.send("/docs");
  expect([text.includes("noindex"), headers.get("x-robots-tag")]).toEqual([false, null]);
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

test("all pages have the typeface of the service, at most 30 kB that a browser keeps for a year", async () => {
  const addresses = await Promise.all(
    ["/", "/docs", "/billing"].map(async (path) => {
      const { text } = await service.send(path, { headers: { accept: "text/html" } });
      return /<link rel="preload" href="([^"]+)" as="font"/.exec(text)?.[1] ?? "";
    }),
  );
  expect(new Set(addresses)).toEqual(new Set([expect.stringMatching(/^\/brand\/figtree\.woff2\?v=\w+$/)]));
  const [address = ""] = addresses;
  expect((await service.send("/brand/brand.css")).text).toContain(`url("${address}")`);
  const { headers } = await service.send(address, { headers: { "accept-encoding": "identity" } });
  expect(headers.get("content-type")).toBe("font/woff2");
  expect(headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
  const bytes = Number(headers.get("content-length"));
  expect(bytes).toBeGreaterThan(10_000);
  expect(bytes).toBeLessThanOrEqual(30_000);
});

test("every file of the page has a policy that forbids other scripts, frames and requests", async () => {
  for (const path of ["/docs", "/docs/page.js", "/docs/page.css"]) {
    const { headers } = await service.send(path);
    expect(headers.get("content-security-policy")?.split("; ").toSorted()).toEqual([
      "base-uri 'none'",
      "connect-src 'self'",
      "default-src 'none'",
      "font-src 'self'",
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
