import { Exposition } from "../../harness/assertions/metrics.ts";
import { signIn } from "../../harness/clients/page-visitor.ts";
import type { Attack, Finding } from "../attack.ts";
import type { AttackStack } from "../attack-stack.ts";
import { exchange } from "../callers/connection.ts";
import type { PartialResponse } from "../callers/responses.ts";
import { doorHost, getAt, openDoors } from "../open-doors.ts";

/** Addresses with a token, right and wrong, as clients, browsers and mistaken people send them. */
function requestsWith(token: string): string[] {
  const path = `/searxng/k/${token}`;
  const paths = [
    `${path}/search?q=leak&format=json`,
    `${path}/search?q=leak&format=html`,
    `${path}/search`,
    path,
    `${path}/../../v1/usage`,
    `${path}%2fsearch`,
    `/searxng/k/%73${token.slice(1)}/search?q=leak&format=json`,
    `/searxng/K/${token}/search`,
    `/tavily/k/${token}/search`,
    `/unknown/k/${token}/search`,
    `/k/${token}/search`,
    `//${path}/search`,
    `/billing/k/${token}`,
    `/docs/${token}`,
    `/mcp/${token}`,
    `/v1/usage?token=${token}`,
    `${path}/search?q=leak&format=json&${"x".repeat(9_000)}`,
    `${path}/%ZZ`,
    `${path}/search?language=${token}&q=leak&format=json`,
    `${path}/search?pageno=${token}&q=leak&format=json`,
  ];
  return [
    ...paths.map((one) => getAt("serp.example", one)),
    ...paths.map((one) => getAt(doorHost, one)),
    getAt("serp.example", "/billing", [`referer: https://serp.example${path}/search`]),
    getAt("serp.example", "/searxng/search?q=leak&format=json", [`x-api-key: ${token}`]),
    getAt("serp.example", "/v1/usage", [`authorization: Bearer ${token}`, `x-request-id: ${token}`]),
    getAt(token, `${path}/search`),
    `GET ${path}/search HTTP/9.9\r\nhost: serp.example\r\n\r\n`,
    `GET ${path}/search HTTP/1.1\r\nhost: a\r\nhost: ${token}\r\n\r\n`,
    `${token} ${path} HTTP/1.1\r\nhost: serp.example\r\n\r\n`,
    `POST ${path}/search HTTP/1.1\r\nhost: serp.example\r\ncontent-length: x${token}\r\n\r\n`,
  ];
}

/** Tokens in addresses, where proxies and histories keep them: the service itself must not. */
export const leakingAddresses: Attack = {
  name: "leaking-addresses",
  tried:
    "tokens in addresses, right and wrong, with errors of every kind; then all that the processes wrote is searched",
  stack: { payments: true, settings: { ...openDoors, TRUSTED_PROXIES: "1" } },
  run: async (stack) => {
    const door = await stack.service.organization({ scopes: ["door"], dayMils: 100 });
    const responses: PartialResponse[] = [];
    for (const request of requestsWith(door.token)) responses.push(...(await exchange(stack.apiUrl, [request])));
    await stack.service.rest(door.organizationId);
    // An account page lists the token that its organization has.
    const owner = await stack.service.organization();
    const pages = await (await signIn(stack.service, owner)).get("/billing/tokens");
    return [await judgeWritten(stack, door.token, [...responses.map(textOf), pages.text]), judgeReferrers(responses)];
  },
};

const textOf = ({ headers, body }: PartialResponse) => `${JSON.stringify([...headers])}\n${body}`;

async function judgeWritten({ service }: AttackStack, token: string, responses: readonly string[]): Promise<Finding> {
  // Its first and its last characters are shown to people who look for it.
  const secret = token.slice(6, -6);
  const processes = [...service.apis, ...service.workers];
  const metrics = await Promise.all(processes.map((process) => Exposition.of(process)));
  const written: [string, readonly string[]][] = [
    ["responses", responses],
    ["logs", processes.map(({ lines, stderr }) => JSON.stringify(lines) + stderr)],
    ["metrics", metrics.map(({ text }) => text)],
    ["search log", [JSON.stringify((await service.database.query("select * from search_log")).rows)]],
  ];
  const leaks = written.filter(([, texts]) => texts.some((text) => text.includes(secret))).map(([where]) => where);
  return {
    promised: "no response, log, metric or recorded search has a token from an address",
    seen: `${responses.length} responses; ${leaks.length === 0 ? "none has it" : `in ${leaks.join(", ")}`}`,
    held: leaks.length === 0 && responses.length > 0,
  };
}

function judgeReferrers(responses: readonly PartialResponse[]): Finding {
  const policies = responses.map(({ headers }) => headers.get("referrer-policy") ?? "none");
  const others = policies.filter((policy) => !["no-referrer", "same-origin"].includes(policy));
  return {
    promised: "no browser sends the address to another site",
    seen: `${policies.length} responses, ${others.length} without such a policy`,
    held: others.length === 0,
  };
}
