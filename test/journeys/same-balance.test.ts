import { afterAll, beforeAll, expect, test } from "vitest";
import { Agent } from "../harness/clients/agent.ts";
import { type PageVisitor, signIn } from "../harness/clients/page-visitor.ts";
import type { Organization, Service } from "../harness/processes/service.ts";
import { stubbedService } from "../harness/processes/usual-stack.ts";
import type { SerperStub } from "../harness/stubs/serper-stub.ts";

/** REST, MCP and the billing page show the same balance at the same moment, at every API process. */

const apis = [0, 1];
const heldSearches = 20;
const rounds = 12;

let service: Service;
let stub: SerperStub;
let organization: Organization;
let agents: Agent[];
let visitors: PageVisitor[];
beforeAll(async () => {
  ({ service, stub } = await stubbedService({ apis: apis.length }));
  organization = await service.organization({ creditMils: 100_000 });
  agents = await Promise.all(apis.map((api) => Agent.connect(service, organization.token, { api })));
  visitors = await Promise.all(apis.map((api) => signIn(service, organization, { api })));
});
afterAll(() => Promise.all(agents.map((agent) => agent.close())));

function agentAt(api: number): Agent {
  const agent = agents[api];
  if (!agent) throw new Error(`there is no agent at the API ${api}`);
  return agent;
}

/** What the billing page shows as available, in mils. */
async function shownAt(api: number): Promise<number> {
  await service.redis.del(`pages:${organization.organizationId}`); // The window of the page is not the subject here.
  const { status, text = "" } = (await visitors[api]?.get("/billing")) ?? {};
  if (status !== 200) throw new Error(`the page was answered ${status}`);
  const shown = /Available<\/h2>\s*<p class="figure"><data value="(\d+)"/.exec(text)?.[1];
  return Number(shown);
}

/** Every way to read the balance, as a caller uses it through one API. A new one gets a line here. */
const balanceAt: Record<string, (api: number) => Promise<number>> = {
  REST: async (api) => (await service.usage(organization.token, api)).body.creditBalanceMils,
  MCP: async (api) => (await agentAt(api).call("usage.get")).body.creditBalanceMils,
  page: shownAt,
};

/** Every way to search. @returns whether the search was answered. */
const searchAt: ((api: number, keyword: string) => Promise<boolean>)[] = [
  async (api, keyword) => (await service.search(organization.token, { keyword }, { api })).status === 200,
  async (api, keyword) => !(await agentAt(api).call("serp.search", { keyword })).isError,
];

/** The balance that each way of each process shows at this moment, in mils. */
async function readAll(): Promise<Record<string, number>> {
  const reading = Object.entries(balanceAt).flatMap(([way, read]) =>
    apis.map(async (api) => [`${way} ${api}`, await read(api)] as const),
  );
  return Object.fromEntries(await Promise.all(reading));
}

async function expectSame(mils: number): Promise<void> {
  const shown = await readAll();
  expect(shown).toEqual(Object.fromEntries(Object.keys(shown).map((way) => [way, mils])));
}

test("REST, MCP and the page show the same balance while searches hold a part of it, and after they have ended", async () => {
  await expectSame(100_000);
  const release = stub.hold();
  const held = Array.from({ length: heldSearches }, (_, at) =>
    searchAt[at % searchAt.length]?.(at % apis.length, "held"),
  );
  await service.until(async () => (await service.holdsOf(organization.organizationId)).open === heldSearches);
  await expectSame(100_000 - 5 * heldSearches);
  release();
  for (const answered of held) expect(await answered).toBe(true);
  await service.rest();
  await expectSame(100_000 - 5 * heldSearches);
});

test("under load REST, MCP and the page show balances of the same moment", async () => {
  const ending = new AbortController();
  const load = Array.from({ length: 4 }, async (_, at) => {
    const answered: (boolean | undefined)[] = [];
    while (!ending.signal.aborted) {
      const turn = answered.length;
      answered.push(await searchAt[at % searchAt.length]?.(turn % apis.length, `load ${at} ${turn}`));
    }
    return answered;
  });
  // Every search is answered and charged, so the balance only falls: a reading between two others lies between them.
  const readings = [await service.usage(organization.token)];
  for (let round = 0; round < rounds; round += 1) {
    const shown = Object.entries(await readAll());
    readings.push(await service.usage(organization.token));
    const [above = Number.NaN, below = Number.NaN] = readings.slice(-2).map(({ body }) => body.creditBalanceMils);
    const outside = shown.filter(([, mils]) => !(mils <= above && mils >= below));
    expect({ above, below, outside }).toEqual({ above, below, outside: [] });
  }
  ending.abort();
  const answered = await Promise.all(load);
  expect(new Set(answered.flat())).toEqual(new Set([true]));
  await service.rest();
  await expectSame(100_000 - 5 * (heldSearches + answered.flat().length));
  expect(await service.verify()).toMatchObject({ ok: true });
});
