import { afterEach, beforeEach, expect, test } from "vitest";
import { readLine, runAdminHere } from "../harness/clients/admin.ts";
import { run } from "../harness/processes/run.ts";
import { type ProviderStubs, reply, startProviderStubs } from "../worker/providers/provider-stubs.ts";

const allProviders = "serper,dataforseo,serpapi,searxng,sandbox";

let stubs: ProviderStubs;
beforeEach(async () => {
  stubs = await startProviderStubs();
});
afterEach(() => stubs.close());

const columns = 160;

/** Runs `providers check` at a terminal, without Postgres and Redis. Its output never holds a secret. */
async function check(args: string[] = [], settings: Record<string, string> = {}) {
  const environment = { ...stubs.settings, SERP_PROVIDERS: allProviders, ...settings };
  const result = await runAdminHere(["providers", "check", ...args], environment, { columns });
  expect(result.stdout + result.stderr).not.toMatch(/secret/);
  return result;
}

test("healthy providers are listed in a table, in order of preference, and the exit code is 0", async () => {
  const { exitCode, stdout, stderr } = await check();
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
  // Latencies differ from run to run.
  expect(stdout.replaceAll(/ +\d+(?= {2}(?:mobile|desktop))/g, (cell) => "123".padStart(cell.length))).toBe(
    [
      "provider    reachable  credentials  balance            latency (ms)  can",
      "──────────  ─────────  ───────────  ─────────────────  ────────────  ─────────────────────────────────────────────────────────────",
      "serper      yes        ok           2,492 credits               123  desktop only, cities, not every language, pages of 10",
      "dataforseo  yes        ok           12.34 USD                   123  mobile, cities, not every language, all pages in one call",
      "serpapi     yes        ok           870 searches left           123  mobile, cities, not every language, pages of 10",
      "searxng     yes        none needed  -                           123  desktop only, countries only, not every language, pages of 10",
      "sandbox     yes        none needed  -                           123  mobile, cities, every language, pages of 10",
      "",
    ].join("\n"),
  );
});

test("each unhealthy provider is a sentence on stderr, and the exit code is 1", async () => {
  stubs.replies.set("dataforseo", reply(200, { status_code: 40_210, status_message: "a-secret", tasks: null }));
  stubs.replies.set("searxng", reply(200, "a-secret of a captive portal"));
  const settings = { SERPER_API_KEY: "", SERPAPI_BASE_URL: "http://127.0.0.1:1" };
  const { exitCode, stdout, stderr } = await check([], settings);
  expect(exitCode).toBe(1);
  expect(stderr.split("\n")).toEqual([
    "serper lacks SERPER_API_KEY.",
    "dataforseo rejects our account: wrong credentials, no credits left, or a setting of the account.",
    "serpapi is unreachable or returned a server error.",
    "searxng returned an unreadable answer.",
    "",
  ]);
  const cells = stdout.split("\n").map((line) => line.split(/ {2,}/));
  expect(cells.slice(2, 7).map((row) => row.slice(0, 4))).toEqual([
    ["serper", "-", "missing: SERPER_API_KEY", "-"],
    ["dataforseo", "yes", "refused", "-"],
    ["serpapi", "no", "-", "-"],
    ["searxng", "yes", "none needed", "-"],
    ["sandbox", "yes", "none needed", "-"],
  ]);
  const asJson = await check(["--json"], settings);
  expect(asJson).toMatchObject({ exitCode: 1, stderr });
  expect(readLine(asJson.stdout)).toMatchObject({ ok: false });
});

test("an unknown provider or an invalid setting is refused, and no provider is called", async () => {
  expect(await check(["--json"], { SERP_PROVIDERS: "serper,serpai" })).toEqual({
    exitCode: 2,
    stdout: "",
    stderr: expect.stringMatching(/^These settings are missing or wrong:\n {2}SERP_PROVIDERS: expected [^\n]+\n$/),
  });
  const { exitCode, stderr } = await check(["--json"], { SERPER_API_KEY: "a secret with blanks" });
  expect({ exitCode, stderr }).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("  SERPER_API_KEY: ") });
  expect(stubs.requests).toEqual([]);
});

test("the command runs as a process without DATABASE_URL and REDIS_URL, and sets the exit code", async () => {
  stubs.replies.set("searxng", reply(503, "Oops"));
  const environment = { ...stubs.settings, SERP_PROVIDERS: "searxng,sandbox" };
  const { exitCode, stdout, stderr } = await run("commands/main.ts", ["providers", "check", "--json"], environment);
  expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: "searxng is unreachable or returned a server error.\n" });
  expect(readLine(stdout)).toMatchObject({ ok: false, providers: [{ provider: "searxng" }, { provider: "sandbox" }] });
});
