import { expect, test } from "vitest";
import { readAudit } from "../../../shared/audit/audit.ts";
import { newId } from "../../../shared/ids.ts";
import { forgetPageViews, ownForm, signIn } from "../../harness/clients/page-visitor.ts";
import { sendEvent } from "../../harness/clients/topups.ts";
import { accountRoutes } from "../../harness/fixtures/account-routes.ts";
import type { Organization } from "../../harness/processes/service.ts";
import { startStripeService } from "../../harness/processes/stripe-stack.ts";
import { eventOf } from "../../harness/stubs/stripe-stub.ts";

/** Inputs to every page of the account, the playground and Stripe's webhook that no form of ours and no Stripe sends. */

const { stub, service } = await startStripeService();

const last = "zzzzzzzzzzzzzzzzzzzzzzzzz";
/** The id of a request of the past that no caller has sent. */
const unknownRequestId = `req_01m7xxzmpj${last.slice(0, 16)}`;
/** The form of an id, and larger than any UUID. */
const noUuid = `req_7${last}`;

/** Texts that no field of ours expects. */
const badTexts = ["constructor", "__proto__", "a\0b", "-1", "1e400", "%", "../..", "2026-13", `tok_7${last}`].concat([
  unknownRequestId,
  noUuid,
  "\u{1f600}".repeat(101),
  "x".repeat(3_000),
  "9".repeat(400),
]);

const queryFields =
  "show find token from to before measure range topup done saved revoked month keyword location language device depth code".split(
    " ",
  );

const pages = accountRoutes.filter(({ method }) => method === "get").map(({ path }) => path);
const forms = accountRoutes.filter(({ method }) => method === "post").map(({ path }) => path);

/** The fields that the forms below an address read, each with a right value. */
const fieldsBelow: Record<string, string> = {
  "/billing/sign": "code=&next=%2Fbilling",
  "/billing/tokens/": "name=a&scope=search&expires=&ends=3600&day=&month=&children=&id=",
  "/billing/settings/": "day=&month=&days=&dollars=5&url=https%3A%2F%2Fexample.com&event=",
  "/billing/topup": "mils=10000",
  "/billing/auto-topup": "threshold=5&ceiling=100&mils=10000",
  "/playground/": "key=k&keyword=tea&location=&language=&device=&depth=&targetDomain=&format=&types=&code=",
};
const usualFields = Object.values(fieldsBelow).join("&");

/** A form of an address that is not above gets all fields. */
const fieldsOf = (path: string): string[] => {
  const below = Object.keys(fieldsBelow).find((start) => path.startsWith(start)) ?? "";
  return ["organization", "token", ...new URLSearchParams(fieldsBelow[below] ?? usualFields).keys()];
};

/** What makes the rest of a form right, so that its bad field is looked at. */
const formOf = ({ organizationId, tokenId }: Organization): Record<string, string> => ({
  ...Object.fromEntries(new URLSearchParams(usualFields)),
  organization: organizationId,
  token: tokenId,
  id: newId("tok"),
  event: newId("evt"),
});

async function signedIn(): Promise<{ organization: Organization; cookie: string }> {
  const organization = await service.organization({ creditMils: 1_000_000 });
  const { cookie = "" } = await signIn(service, organization, { headers: { "x-forwarded-proto": "https" } });
  return { organization, cookie };
}

/** The status of an answer; the rest of it is not read, because some never end. What was asked too often is asked again. */
async function statusOf(path: string, init: RequestInit): Promise<number> {
  const ask = async () => {
    const leaving = new AbortController();
    const whole = { ...init, redirect: "manual", signal: leaving.signal } as const;
    const { status } = await fetch(`${service.apis[0]?.url}${path}`, whole);
    leaving.abort();
    return status;
  };
  const status = await ask();
  if (status !== 429) return status;
  await forgetPageViews(service);
  return ask();
}

const atOnce = 8;
async function inParallel<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  const left = [...items];
  const next = async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: atOnce }, next));
}

const defects = () => service.apis.flatMap(({ errors }) => errors.map(({ msg, err }) => ({ msg, err })));

/** Two of the texts in turn: each page and each of its fields gets every text, and not each pair of them. */
const someTexts = (row: number, column: number) => badTexts.filter((_, n) => (n + row + column) % turns === 0);
const turns = Math.ceil(badTexts.length / 2);

test("no query or address of a page is a defect of the service", async () => {
  const { cookie } = await signedIn();
  const asked = pages.flatMap((page, row) => {
    const parameter = /:\w+/.exec(page)?.[0];
    if (parameter !== undefined) return badTexts.map((text) => page.replace(parameter, encodeURIComponent(text)));
    const others = page.includes("searches") ? [{}, { find: "a" }] : [{}];
    const queries = queryFields.flatMap((field, column) =>
      someTexts(row, column).flatMap((text) => others.map((other) => ({ ...other, [field]: text }))),
    );
    const texts = queries.map((query) => new URLSearchParams(query).toString());
    return [...texts, "find=%E0%A4%A", "token=a&token=b", "before[a]=1", "__proto__=1"].map(
      (text) => `${page}?${text}`,
    );
  });
  const statuses = new Set<string>();
  await inParallel(asked, async (path) => {
    const status = await statusOf(path, { headers: { cookie } });
    statuses.add(status === 500 ? `500 ${path}` : String(status));
  });
  expect([...statuses].toSorted()).toEqual(expect.arrayContaining(["200", "404"]));
  expect([...statuses].filter((status) => status.startsWith("500"))).toEqual([]);
  expect(defects()).toEqual([]);
});

test("no field of a form is a defect of the service", async () => {
  const wrong: string[] = [];
  await inParallel([...forms.entries()], async ([row, path]) => {
    const { organization, cookie } = await signedIn();
    for (const [column, field] of fieldsOf(path).entries()) {
      for (const text of someTexts(row, column)) {
        const body = new URLSearchParams({ ...formOf(organization), token: newId("tok"), [field]: text });
        const status = await statusOf(path, { method: "POST", headers: { cookie, ...ownForm }, body });
        if (status === 500) wrong.push(`${path} ${field}=${text.slice(0, 40)}`);
      }
    }
  });
  expect(wrong).toEqual([]);
  expect(defects()).toEqual([]);
});

test("a form of another site, without a session or of a page of another organization changes nothing", async () => {
  const { organization, cookie } = await signedIn();
  const { organizationId } = organization;
  const state = async () => [
    await service.ledgerOf(organizationId),
    await readAudit(service.database, { organizationId, limit: 100 }),
    stub.calls.length,
  ];
  const before = await state();
  const ofAccount = forms.filter((path) => !path.startsWith("/billing/sign-"));
  expect(ofAccount.length).toBeGreaterThan(15);
  await inParallel(ofAccount, async (path) => {
    const send = (headers: Record<string, string>, fields: Record<string, string> = {}) => {
      const body = new URLSearchParams({ ...formOf(organization), ...fields });
      return statusOf(path, { method: "POST", headers, body });
    };
    const statuses = {
      otherSite: await send({ cookie, "sec-fetch-site": "cross-site" }),
      noSession: await send(ownForm),
      otherOrganization: await send({ cookie, ...ownForm }, { organization: newId("org") }),
      noOrganization: await send({ cookie, ...ownForm }, { organization: "" }),
    };
    const refused = { otherSite: 400, noSession: 401, otherOrganization: 400, noOrganization: 400 };
    expect([path, statuses]).toEqual([path, refused]);
  });
  expect(await state()).toEqual(before);
});

test("a signed event of another shape is a bad request that names the field, and none is a defect", async () => {
  const { organizationId } = await service.organization();
  const metadata = { serpmill_organization: organizationId, serpmill_mils: "10", serpmill_auto_topup: newId("pay") };
  const intent = { id: "pi_1", object: "payment_intent", status: "succeeded", currency: "usd", metadata };
  const setup = { id: "cs_1", mode: "setup", status: "complete", customer: "cus_1", setup_intent: "seti_1", metadata };
  const events = [
    eventOf(stub.paid(organizationId, 1_000)),
    eventOf({ ...intent, amount_received: 1, created: 1, latest_charge: "ch_1" }, "payment_intent.succeeded"),
    eventOf(setup),
    eventOf({ id: "ch_1", payment_intent: "pi_1", metadata }, "charge.refunded"),
  ];
  const wrong: unknown[] = [];
  await inParallel(
    events.flatMap((event) => [...distorted(event)]),
    async (event) => {
      const { status } = await sendEvent(service, event);
      if (![200, 400, 503].includes(status)) wrong.push({ status, event });
    },
  );
  expect(wrong).toEqual([]);
  const shapeless = await sendEvent(service, { id: "evt_1", object: "event" });
  expect([shapeless.status, shapeless.body.error.code]).toEqual([400, "bad_request"]);
  const named = shapeless.body.error.details.issues.map(({ path }: { path: string }) => path);
  expect(named).toEqual(["type", "livemode", "data"]);
  const unhandled = defects().filter(({ msg }) => msg === "unhandled error");
  expect(unhandled).toEqual([]);
});

/** Every object that differs from one in one place, where it has something of another kind. */
function* distorted(value: unknown): Generator {
  yield* [null, 1, -1, 1e300, true, "", "\0", "constructor", "__proto__", [], {}];
  if (typeof value !== "object" || value === null) return;
  for (const [key, part] of Object.entries(value))
    for (const other of distorted(part)) yield { ...value, [key]: other };
}
