import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { everythingInPostgres, everythingInRedis } from "../../../harness/assertions/everything-in-redis.ts";
import { Exposition } from "../../../harness/assertions/metrics.ts";
import { Service } from "../../../harness/processes/service.ts";
import { listen } from "../../../harness/stubs/listen.ts";

const key = "canary-key-in-an-address";
const page = {
  search_metadata: { status: "Success" },
  organic_results: [{ title: "Pumps", link: "https://pumps.example/" }],
};

/** The replies of the SerpApi stub, by keyword. Each one that has a text repeats the key. */
const replies: Record<string, (response: ServerResponse, url: string) => void> = {
  good: (response) => response.end(JSON.stringify(page)),
  refused: (response, url) =>
    response.writeHead(401).end(JSON.stringify({ error: `Invalid API key: ${key} in ${url}` })),
  unsupported: (response, url) =>
    response.writeHead(400).end(JSON.stringify({ error: `Unsupported ${url} - location parameter.` })),
  broken: (response) => response.destroy(),
  failed: (response, url) => response.writeHead(503).end(url),
  redirected: (response, url) => response.writeHead(302, { location: url }).end(),
  unreadable: (response, url) => response.end(`<a href="${url}">`),
  malformed: (response, url) => response.socket?.end(`HTTP/1.1 ${url}\r\n\r\n`),
  repeated: (response, url) =>
    response.end(JSON.stringify({ ...page, other_results: [{ title: key, link: `https://serpapi.example${url}` }] })),
  silent: () => {},
};

const seen: URL[] = [];
const stub = await listen((request, response) => {
  const url = new URL(request.url ?? "", "http://stub");
  seen.push(url);
  replies[url.searchParams.get("q") ?? ""]?.(response, request.url ?? "");
});

// The deadline belongs to the API that admits a search. The second API is for the one search that has to time out.
const timingOut = 1;
const service = await Service.start({ apis: 0, workers: 0 });
const settings = { SERP_PROVIDERS: "serpapi", SERPAPI_API_KEY: key, SERPAPI_BASE_URL: stub.url, LOG_LEVEL: "trace" };
const apis = [await service.startApi(settings), await service.startApi({ ...settings, SEARCH_DEADLINE_MS: "5000" })];
const worker = await service.startWorker(settings);
for (const api of apis) await service.until(async () => (await Exposition.of(api)).value("workers_reporting") === 1);
afterAll(() => Promise.all([service.stop(), stub.close()]));

test("the key in the URL never reaches a log line, an answer, a metric, a trace, Postgres or Redis", async () => {
  const { token } = await service.organization();
  const statuses: Record<string, number> = {};
  const outputs: string[] = [];
  for (const keyword of Object.keys(replies)) {
    const search = () => service.search(token, { keyword }, { api: keyword === "silent" ? timingOut : 0 });
    let running = search();
    if (keyword === "silent") {
      await service.until(async () => {
        if (seen.at(-1)?.searchParams.get("q") === "silent") return true;
        // On a busy machine a search may time out before the provider is called.
        if (await Promise.race([running, sleep(0)])) running = search();
        return false;
      });
      outputs.push(await everythingInRedis(service.redis), await everythingInPostgres(service.databaseUrl));
    }
    const answer = await running;
    statuses[keyword] = answer.status;
    outputs.push(answer.text);
  }
  await stub.close();
  outputs.push((await service.search(token, { keyword: "unreachable" })).text);
  for (const process of [...apis, worker]) {
    outputs.push((await Exposition.of(process)).text, process.stderr);
    outputs.push(...process.lines.map((line) => JSON.stringify(line)));
  }
  outputs.push(await everythingInRedis(service.redis), await everythingInPostgres(service.databaseUrl));

  expect(statuses).toMatchObject({
    good: 200,
    repeated: 200,
    refused: 502,
    unsupported: 400,
    redirected: 502,
    silent: 504,
  });
  expect(new Set(seen.map(({ searchParams }) => searchParams.get("api_key")))).toEqual(new Set([key]));
  expect(new Set(seen.map(({ searchParams }) => searchParams.get("q")))).toEqual(new Set(Object.keys(replies)));
  expect(outputs.some((text) => text.includes('"provider":"serpapi"'))).toBe(true); // So the outputs include the traces.
  expect(outputs.filter((text) => text.includes(key))).toEqual([]);
});
