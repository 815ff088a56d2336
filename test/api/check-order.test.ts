import { expect, test } from "vitest";
import type { Scope } from "../../shared/organizations/organizations.ts";
import { revokeToken } from "../../api/tokens/tokens.ts";
import {
  endlessWindow,
  enqueuedSearches,
  expectNoTrace,
  organizationState,
  type Refusal,
  refusalIn,
} from "../harness/fixtures/refusals.ts";
import type { Organization } from "../harness/processes/service.ts";
import { usualService } from "../harness/processes/usual-stack.ts";

/** The order of the checks: the first check that fails determines the error, and later steps change nothing. */

const key = "paid";

const service = await usualService();

const steps = ["identity", "scope", "request", "engine", "plan", "credits", "in flight", "rate limit"] as const;
type Step = (typeof steps)[number];

const refusals: Record<Step, Refusal> = {
  identity: { code: "unauthenticated", details: {} },
  scope: { code: "unauthenticated", details: { reason: "scope", scope: "search" } },
  request: { code: "bad_request" },
  engine: { code: "not_implemented" },
  plan: { code: "plan_required" },
  credits: { code: "out_of_credits" },
  "in flight": { code: "rate_limited", details: expect.objectContaining({ reason: "concurrency" }) },
  "rate limit": { code: "rate_limited", details: expect.objectContaining({ reason: "window" }) },
};

/** A search that fails exactly these checks, to be sent once. `end` releases what was set up for it. */
interface Wrong {
  organization: Organization;
  token: string;
  body: object;
  end: () => Promise<void>;
}

async function wrongIn(...wrong: Step[]): Promise<Wrong> {
  const is = (step: Step) => wrong.includes(step);
  const organization = await service.organization({
    // The search in flight holds its price.
    creditMils: !is("credits") ? 1_000 : is("in flight") ? 5 : 0,
    terms: {
      ...endlessWindow,
      ...(is("in flight") && { concurrency: 1 }),
      ...(is("rate limit") && { windowLimit: 1 }),
    },
  });
  const end = is("in flight") ? await keepOneInFlight(organization) : async () => undefined;
  if (is("rate limit") && !is("in flight")) await service.usage(organization.token);
  if (is("plan")) await takeSearchFromPlan(organization);
  const token = await otherToken(organization, wrong);
  const body = { keyword: is("request") ? "" : "a", engine: is("engine") ? "bing" : "google" };
  return { organization, token, body, end };
}

/** A token that no API has cached yet, so that the API reads the current state from Postgres. */
async function otherToken({ organizationId }: Organization, wrong: readonly Step[]): Promise<string> {
  const scopes: Scope[] = wrong.includes("scope") ? ["usage", "billing"] : ["search"];
  const { token, tokenId } = await service.issue(organizationId, { scopes });
  if (wrong.includes("identity")) await revokeToken(service.database, tokenId);
  return token;
}

async function takeSearchFromPlan({ organizationId }: Organization): Promise<void> {
  await service.database.query(
    `update plans set operations = '{usage.get}'
     where code = (select plan_code from organizations where id = $1)`,
    [organizationId],
  );
}

async function keepOneInFlight(organization: Organization): Promise<() => Promise<void>> {
  const caller = new AbortController();
  const search = service.search(organization.token, { keyword: "sandbox:slow=25000" }, { signal: caller.signal });
  const ended = search.then(
    () => undefined,
    () => undefined,
  );
  // Once held and enqueued, the search changes no state until it ends.
  await service.until(async () => {
    const { holds } = await organizationState(service, organization);
    return (await enqueuedSearches(service)).some((requestId) => requestId in holds);
  });
  return async () => {
    caller.abort();
    await ended;
  };
}

const cases = steps.flatMap((first, at) => [
  { first, others: [] as Step[], title: `${first} alone` },
  ...steps.slice(at + 1, at + 2).map((second) => ({ first, others: [second], title: `${first} before ${second}` })),
]);

test.each(cases)(
  "$title: the first failed check determines the error, and nothing changes",
  async ({ first, others }) => {
    const { organization, token, body, end } = await wrongIn(first, ...others);
    try {
      const answer = await expectNoTrace(service, organization, () => service.search(token, body));
      expect(refusalIn(answer)).toMatchObject(refusals[first]);
    } finally {
      await end();
    }
  },
);

test("a depth beyond the plan's is refused like a plan without searches: before credit and window, and without a trace", async () => {
  const terms = { ...endlessWindow, pricePerPageMils: 3, maxDepth: 20 };
  const organization = await service.organization({ creditMils: 5, terms });
  const search = (depth: number, options = {}) => service.search(organization.token, { keyword: "a", depth }, options);
  const details = { plan: expect.any(String), action: "upgrade", reason: "max_depth", maxDepth: 20 };
  for (const options of [{}, { key }]) {
    const tooDeep = await expectNoTrace(service, organization, () => search(21, options));
    expect(refusalIn(tooDeep)).toEqual({ code: "plan_required", details });
    // Without the name of a field, which is another one at a door.
    expect(tooDeep.body.error.message).toMatch(/ includes searches for at most 20 organic results\.$/);
  }
  const tooDear = await expectNoTrace(service, organization, () => search(20));
  expect(refusalIn(tooDear)).toMatchObject({ code: "out_of_credits", details: { priceMils: 6, availableMils: 5 } });
});

test("usage checks the token before the rate window", async () => {
  const { organization, token } = await wrongIn("identity", "rate limit");
  expect(refusalIn(await expectNoTrace(service, organization, () => service.usage(token)))).toMatchObject(
    refusals.identity,
  );
  expect(refusalIn(await expectNoTrace(service, organization, () => service.usage(organization.token)))).toMatchObject({
    code: "rate_limited",
  });
});

/** An organization that has spent its whole credit on one search under its key. */
async function paidUp(terms: object = {}) {
  const organization = await service.organization({
    creditMils: 5,
    terms: { ...endlessWindow, windowLimit: 1, ...terms },
  });
  const first = await service.search(organization.token, { keyword: "a" }, { key });
  expect(first.status).toBe(200);
  await service.rest(organization.organizationId); // Other tests' abandoned searches keep their holds for long.
  return { organization, first };
}

test("a repeat gets its answer although the balance is empty and the window full, and takes nothing", async () => {
  const { organization, first } = await paidUp();
  const again = await expectNoTrace(service, organization, () =>
    service.search(organization.token, { keyword: " a " }, { key }),
  );
  expect(again).toMatchObject({ status: 200, text: first.text });
  expect(again.headers.get("idempotency-replayed")).toBe("true");
  expect(again.requestId).toBe(first.body.requestId);
  const fresh = await service.search(organization.token, { keyword: "a" }, { key: "fresh" });
  expect(refusalIn(fresh)).toMatchObject(refusals.credits);
});

test("a repeat gets its answer although too many searches are in flight", async () => {
  const organization = await service.organization({ terms: { ...endlessWindow, concurrency: 1 } });
  const first = await service.search(organization.token, { keyword: "a" }, { key });
  await service.rest(organization.organizationId);
  const end = await keepOneInFlight(organization);
  try {
    const again = await expectNoTrace(service, organization, () =>
      service.search(organization.token, { keyword: "a" }, { key }),
    );
    expect(again).toMatchObject({ status: 200, text: first.text });
  } finally {
    await end();
  }
});

test("a key that was used for another query is rejected before the balance is checked", async () => {
  const { organization } = await paidUp();
  const other = await expectNoTrace(service, organization, () =>
    service.search(organization.token, { keyword: "b" }, { key }),
  );
  expect(refusalIn(other)).toEqual({ code: "bad_request", details: { reason: "idempotency_key_reused" } });
});

test.each(["identity", "scope", "request", "plan"] as const)(
  "%s is checked before a remembered answer",
  async (step) => {
    const { organization } = await paidUp();
    if (step === "plan") await takeSearchFromPlan(organization);
    const token = await otherToken(organization, [step]);
    const again = await expectNoTrace(service, organization, () =>
      service.search(token, { keyword: step === "request" ? "" : "a" }, { key }),
    );
    expect(refusalIn(again)).toMatchObject(refusals[step]);
  },
);

test("a repeat that waits takes a rate token but no slot in flight, and gets the same answer", async () => {
  const organization = await service.organization({
    creditMils: 5,
    terms: { ...endlessWindow, concurrency: 1, windowLimit: 2 },
  });
  const search = () => service.search(organization.token, { keyword: "sandbox:slow=2000" }, { key });
  const first = search();
  await service.until(async () => (await service.holdsOf(organization.organizationId)).open === 1);
  const second = search();
  await service.until(async () => (await organizationState(service, organization)).rateTokensTaken === "2");
  expect(refusalIn(await expectNoTrace(service, organization, search))).toMatchObject(refusals["rate limit"]);
  expect(await second).toMatchObject({ status: 200, text: (await first).text });
  expect((await organizationState(service, organization)).rateTokensTaken).toBe("2");
});
