import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { sendRaw } from "../harness/clients/raw-http.ts";
import { Service } from "../harness/processes/service.ts";

/** Callers that hold the body of a search back, so that the providers would have less time for it than they need. */

const deadlineMs = 3_000;
const service = await Service.start({ environment: { SEARCH_DEADLINE_MS: String(deadlineMs) } });
afterAll(() => service.stop());

const apiUrl = () => service.apis[0]?.url ?? "";

const search = { keyword: "held back" };
const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "serp.search", arguments: search } };

test.concurrent.each([
  { path: "/v1/serp/search", message: search },
  { path: "/mcp", message: call },
])(
  "a body of $path that takes the whole deadline to arrive leaves its search the whole deadline",
  async ({ path, message }) => {
    const { organizationId, token } = await service.organization({ creditMils: 5 });
    const body = JSON.stringify(message);
    const head = [
      `POST ${path} HTTP/1.1`,
      `Host: ${new URL(apiUrl()).host}`,
      `Authorization: Bearer ${token}`,
      "Content-Type: application/json",
      "Accept: application/json, text/event-stream",
      `Content-Length: ${body.length}`,
    ].join("\r\n");
    const afterwards = async () => {
      await sleep(deadlineMs);
      return body.slice(1);
    };
    const { answers } = await sendRaw(apiUrl(), `${head}\r\n\r\n${body.slice(0, 1)}`, { afterwards });
    expect(answers).toMatchObject([{ status: 200 }]);
    await service.rest();
    expect(await service.ledgerOf(organizationId)).toMatchObject([{ kind: "grant" }, { kind: "charge" }]);
  },
);
