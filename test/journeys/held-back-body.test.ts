import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { revokeToken } from "../../api/tokens/tokens.ts";
import { signIn } from "../harness/clients/page-visitor.ts";
import { requestText, sendRaw } from "../harness/clients/raw-http.ts";
import { Service } from "../harness/processes/service.ts";

/** Callers that hold the body of a search back: for the providers' time, or until after their token was revoked. */

const deadlineMs = 8_000;
const revokedWithinMs = 2_000;
const environment = { SEARCH_DEADLINE_MS: String(deadlineMs), COMPAT_DOORS: "serper" };
const service = await Service.start({ environment, end: afterAll });

/** Sends a request but for its body, whose first byte comes at once and the rest after `meanwhile`. */
async function sendHeldBack(
  { path, headers, body }: { path: string; headers: Record<string, string>; body: string },
  meanwhile: () => Promise<unknown>,
) {
  const url = service.apis[0]?.url ?? "";
  const whole = requestText(`POST ${path}`, { host: new URL(url).host, ...headers }, body);
  const rest = body.slice(1);
  const { answers } = await sendRaw(url, whole.slice(0, -rest.length), {
    afterwards: () => meanwhile().then(() => rest),
  });
  return answers;
}

const search = { keyword: "held back" };
const messages = {
  "/v1/serp/search": search,
  "/mcp": { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "serp.search", arguments: search } },
  "/serper/search": { q: "held back" },
};

const requestOf = (path: keyof typeof messages, token: string) => ({
  path,
  headers: {
    Authorization: `Bearer ${token}`,
    "Content-Type": "application/json",
    Accept: "application/json, text/event-stream",
  },
  body: JSON.stringify(messages[path]),
});

test.concurrent.each(["/v1/serp/search", "/mcp"] as const)(
  "a body of %s that takes the whole deadline to arrive leaves its search the whole deadline",
  async (path) => {
    const { organizationId, token } = await service.organization({ creditMils: 5 });
    const answers = await sendHeldBack(requestOf(path, token), () => sleep(deadlineMs));
    expect(answers).toMatchObject([{ status: 200 }]);
    await service.rest();
    expect(await service.ledgerOf(organizationId)).toMatchObject([{ kind: "grant" }, { kind: "charge" }]);
  },
);

test("a body that comes two seconds after its token was revoked begins no search, over any entrance", async () => {
  const organization = await service.organization();
  const { organizationId, token, tokenId } = organization;
  const { cookie = "" } = await signIn(service, organization);
  const form = {
    path: "/playground/search",
    headers: { Cookie: cookie, "Sec-Fetch-Site": "same-origin", "Content-Type": "application/x-www-form-urlencoded" },
    body: new URLSearchParams({ organization: organizationId, key: "form-1", ...search }).toString(),
  };
  const requests = [
    requestOf("/v1/serp/search", token),
    requestOf("/mcp", token),
    requestOf("/serper/search", token),
    form,
  ];
  const revoked = (async () => {
    await sleep(1_000); // Until the API has found the caller of each request.
    await revokeToken(service.database, tokenId);
    await sleep(revokedWithinMs);
  })();
  const answers = await Promise.all(requests.map((request) => sendHeldBack(request, () => revoked)));
  expect(answers).toHaveLength(requests.length);
  // Serper's status is 403. On a busy machine the look-up may take too long: 503.
  for (const { status } of answers.flat()) expect([401, 403, 503]).toContain(status);
  expect(await service.ledgerOf(organizationId)).toMatchObject([{ kind: "grant" }]);
});
