import { tally } from "../../faults/scenarios/statistics.ts";
import type { Attack, Finding } from "../attack.ts";
import type { AttackStack } from "../attack-stack.ts";
import { exchange } from "../callers/connection.ts";
import { outcomeOf } from "../callers/responses.ts";
import { doorHost, getAt, openDoors } from "../open-doors.ts";

/** Spellings of the door's host. */
const hosts = [
  doorHost,
  doorHost.toUpperCase(),
  `${doorHost}.`,
  `${doorHost}:443`,
  `${doorHost}.:8443`,
  `${doorHost}:`,
];
/** What the host of a door must not serve, in spellings that a router may read differently. */
const hidden = [
  "/v1/usage",
  "//v1/usage",
  "/./v1/usage",
  "/searxng/../v1/usage",
  "/search/..%2f..%2fv1/usage",
  "/%76%31/usage",
  "/v1/usage?path=/search",
  "http://127.0.0.1/v1/usage",
  "/mcp",
  "/billing",
  "/billing/tokens",
  "/docs",
  "/openapi.json",
  "/llms.txt",
  "/metrics",
  "/queues",
  "/readyz",
  "/tavily/search",
];
const search = "search?q=confused&format=json";
/** On the API's own host: what looks like a door, or like a way out of one. */
const lookalikes = [
  `//searxng/${search}`,
  `/SEARXNG/${search}`,
  `/%73earxng/${search}`,
  `/searxng%2f${search}`,
  `/searxng;/${search}`,
  `/searxng\\${search}`,
  `/./searxng/${search}`,
  `/v1/../searxng/${search}`,
  `/${search}`,
  "/searxng/../v1/usage",
  "/searxng/../../v1/usage",
  "/searxng/..%2fv1/usage",
  "/searxng/v1/usage",
  "/__proto__/search",
  "/constructor",
];
/** Hosts that only begin or end like that of the door. */
const otherHosts = [`x${doorHost}`, `${doorHost}.evil.example`, `evil.example:${doorHost}`, `${doorHost}@evil.example`];
const forwarded = [`x-forwarded-host: ${doorHost}`, `forwarded: host=${doorHost}`, `x-original-host: ${doorHost}`];

/** A caller asks one door for another, for the API, or for the account, by spellings of its host and its path. */
export const confusedDoors: Attack = {
  name: "confused-doors",
  tried: `${hosts.length} spellings of a door's host × ${hidden.length} paths of the API; ${lookalikes.length} lookalikes of a door's path; hosts in other headers`,
  stack: { settings: openDoors },
  run: async (stack) => {
    const { token } = await stack.service.organization();
    const door = await stack.service.organization({ scopes: ["door"], dayMils: 100 });
    const bearer = [`authorization: Bearer ${token}`];
    const calls = stack.provider.requests.length;
    const ask = (host: string, path: string, headers: readonly string[] = []) =>
      outcome(stack, getAt(host, path, [...bearer, ...headers]));
    const byHost = await askEach(hosts.flatMap((host) => hidden.map((path) => () => ask(host, path))));
    const byPath = await askEach(lookalikes.map((path) => () => ask("serp.example", path)));
    const byName = await askEach(otherHosts.map((host) => () => ask(host, `/${search}`)));
    const inHeader = await askEach(forwarded.map((header) => () => ask("serp.example", `/${search}`, [header])));
    // The token of an address opens nothing behind it, nor behind another mark, another door or the API.
    const inAddress = await askEach(
      [`/k/${door.token}/v1/usage`, `/v1/usage/k/${door.token}`, `/searxng/k/${door.token}/k/${token}/${search}`].map(
        (path) => () => outcome(stack, getAt("serp.example", path)),
      ),
    );
    return [
      judge("the host of a door serves its door and nothing else", byHost, stack.provider.requests.length - calls),
      judge(
        "a lookalike of a door's path leads to none, nor out of one",
        byPath,
        stack.provider.requests.length - calls,
      ),
      judge("another host or header chooses no door", [...byName, ...inHeader], stack.provider.requests.length - calls),
      judge("a token in an address opens its door alone", inAddress, stack.provider.requests.length - calls),
    ];
  },
};

const askEach = async (asks: readonly (() => Promise<string>)[]): Promise<string[]> => {
  const outcomes = [];
  for (const ask of asks) outcomes.push(await ask());
  return outcomes;
};

async function outcome({ apiUrl }: AttackStack, request: string): Promise<string> {
  const [response] = await exchange(apiUrl, [request]);
  return response ? outcomeOf(response) : "closed";
}

/** Every one is refused as a path that does not exist, or as no valid request, and no search runs. */
const judge = (promised: string, outcomes: readonly string[], calls: number): Finding => ({
  promised,
  seen: `${tally(outcomes)}; ${calls} provider calls`,
  held: outcomes.every((seen) => /^40[04] /.test(seen)) && calls === 0,
});
