import { afterAll, expect, test } from "vitest";
import { Exposition } from "../harness/assertions/metrics.ts";
import { sendRaw } from "../harness/clients/raw-http.ts";
import { Service } from "../harness/processes/service.ts";

/** Requests that Node's HTTP parser refuses: what an operator learns of them. */

const service = await Service.start({ apis: 0, workers: 0, end: afterAll });
const api = await service.startApi();

const refused = async (reason: string) =>
  (await Exposition.of(api)).value(`http_parser_refusals_total{reason="${reason}"}`);

test("malformed requests are all counted, few have a line in the log, and none brings the caller's bytes there", async () => {
  const malformed = 30;
  for (let n = 0; n < malformed; n += 1)
    expect((await sendRaw(api.url, `canary${n} / HTTP/1.1\r\n\r\n`)).answers).toMatchObject([{ status: 400 }]);
  const large = `GET / HTTP/1.1\r\nHost: a\r\nX-Canary: ${"canary".repeat(2_000)}\r\n\r\n`;
  expect((await sendRaw(api.url, large)).answers).toMatchObject([{ status: 431 }]);
  expect([await refused("malformed_http"), await refused("headers_too_large")]).toEqual([malformed, 1]);

  const lines = () => api.lines.filter(({ msg }) => msg === "the HTTP parser refused a request");
  await service.until(async () => lines().length > 0);
  expect(lines()[0]).toMatchObject({ level: 30, reason: "malformed_http", code: "HPE_INVALID_METHOD", leftOut: 0 });
  expect(lines().length).toBeLessThan(malformed / 2);
  expect(JSON.stringify(api.lines)).not.toContain("canary");
});

test("a caller that only ends its connection is not counted", async () => {
  const before = await refused("malformed_http");
  const { answers } = await sendRaw(api.url, "GET /nowhere HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  expect(answers).toMatchObject([{ status: 404 }]);
  expect(await refused("malformed_http")).toBe(before);
});
