import { expect, test } from "vitest";
import { usualService } from "../../harness/processes/usual-stack.ts";

/** The page at `/`. */

const browsersAccept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

const service = await usualService();

test("a program gets the 404 of any unknown path at /", async () => {
  for (const accept of ["*/*", "application/json"]) {
    const answer = await service.send("/", { headers: { accept } });
    expect(answer).toMatchObject({ status: 404, body: { error: { code: "not_found" } } });
  }
});

test("a browser gets links that lead somewhere, and commands with the address that it came by", async () => {
  const page = await service.send("/", { headers: { accept: browsersAccept } });
  expect(page.status).toBe(200);
  expect(page.text).toContain(` ${service.apis[0]?.url}/v1/serp/search \\\n`);
  expect(page.text).toContain(`${service.apis[0]?.url}/mcp?names=plain`);
  const links = [...page.text.matchAll(/href="(\/[^"]*)"/g)].map(([, path = ""]) => path);
  expect(links).toEqual(expect.arrayContaining(["/docs", "/billing"]));
  for (const path of links)
    expect((await service.send(path, { headers: { accept: browsersAccept } })).status).toBe(200);
});
