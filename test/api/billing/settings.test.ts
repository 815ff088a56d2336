import { afterAll, beforeEach, expect, test } from "vitest";
import { readAudit } from "../../../shared/audit/audit.ts";
import { forgetSignIns, signIn } from "../../harness/clients/page-visitor.ts";
import { deliveredEvent } from "../../harness/fixtures/delivered-event.ts";
import { Service } from "../../harness/processes/service.ts";
import { answering, verified, WebhookReceiver } from "../../harness/stubs/webhook-receiver.ts";

/** What a payer sets on the page: the threshold of the balance, and the webhook. */

const receiver = await WebhookReceiver.start();
const service = await Service.start({ environment: { WEBHOOK_TARGETS: "any" } });
beforeEach(async () => {
  await forgetSignIns(service);
  receiver.received.length = 0;
});
afterAll(async () => {
  await service.stop();
  await receiver.close();
});

async function signedIn(api = 0) {
  const { organizationId, token, tokenId } = await service.organization({ creditMils: 6_500 });
  const person = await signIn(service, { token }, { api });
  const send = (action: string, fields: Record<string, string> = {}) =>
    person.post(`/billing/settings/${action}`, { organization: organizationId, ...fields });
  const settings = async () => (await person.get("/billing/settings")).text;
  return { organizationId, token, tokenId, person, send, settings };
}

const secretIn = (text: string) => /whsec_[\w+/=]+/.exec(text)?.[0] ?? "";

test("a threshold is saved in dollars; while the balance is below it, the overview has a banner", async () => {
  const { person, send, settings } = await signedIn();
  expect((await person.get("/billing")).text).toContain('<div id="low-balance"></div>');
  const saved = await send("low-balance", { dollars: " $7.5 " });
  expect([saved.status, saved.headers.get("location")]).toEqual([303, "/billing/settings?done=threshold"]);
  expect(await settings()).toContain('value="7.50"');
  expect((await person.get("/billing/settings?done=threshold")).text).toContain("Threshold saved: $7.50.");
  const overview = (await person.get("/billing")).text.replaceAll(/<\/?data[^>]*>/g, "");
  expect(overview).toContain("Your balance of $6.500 is below your threshold of $7.500.");
  await send("low-balance", { dollars: "6.5" });
  expect((await person.get("/billing")).text).toContain('<div id="low-balance"></div>');
  await send("low-balance", { dollars: "" });
  expect(await settings()).toContain('value=""');
});

test.each(["0", '"><script>'])(
  "the threshold %s is refused, and what the person wrote is still there",
  async (dollars) => {
    const { send, settings } = await signedIn();
    await send("low-balance", { dollars: "3" });
    const { status, text } = await send("low-balance", { dollars });
    expect(status).toBe(400);
    expect(text).toContain("Enter an amount above zero");
    expect(text).toContain("Write 1000 without a comma");
    const escaped = dollars.replaceAll('"', "&quot;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
    expect(text).toContain(`value="${escaped}"`);
    expect(await settings()).toContain('value="3.00"');
  },
);

test("where the operator allows it, a payer has answers kept for some days, which is audited, and every API follows", async () => {
  const unoffered = await signedIn();
  expect(await unoffered.settings()).not.toContain("Kept answers");
  expect((await unoffered.send("kept-answers", { days: "1" })).status).toBe(400);
  await service.startApi({ API_PORT: "0", KEPT_ANSWERS_DAYS: "30" });
  const { organizationId, tokenId, send, settings } = await signedIn(service.apis.length - 1);
  expect(await settings()).toContain('name="days" value="0"');
  for (const days of ["31", "-1", "", "x"]) expect((await send("kept-answers", { days })).status).toBe(400);
  const saved = await send("kept-answers", { days: "30" });
  expect([saved.status, saved.headers.get("location")]).toEqual([303, "/billing/settings?done=kept"]);
  expect(await settings()).toContain('name="days" value="30"');
  const set = await readAudit(service.database, { organizationId, action: "kept_answers.set", limit: 10 });
  expect(set).toMatchObject([{ actor: tokenId, before: { days: 0 }, after: { days: 30 } }]);
});

test("an address makes a webhook, whose secret is shown once and signs the test event", async () => {
  const { organizationId, tokenId, send, settings } = await signedIn();
  const { status, text } = await send("webhook", { url: ` ${receiver.url} ` });
  expect(status).toBe(200);
  const secret = secretIn(text);
  expect(secretIn(await settings())).toBe("");
  expect((await send("webhook/test")).headers.get("location")).toBe("/billing/settings?done=test");
  await service.until(async () => receiver.received.length === 1);
  const [request] = receiver.received;
  expect(request && verified(request, secret)).toMatchObject({ type: "webhook.test", data: { organizationId } });
  await service.until(async () => (await settings()).includes("Delivered"));

  // Again by hand, under the same id.
  const { id = "" } = request ?? {};
  expect((await send("webhook/replay", { event: id })).headers.get("location")).toBe("/billing/settings?done=again");
  await service.until(async () => receiver.received.length === 2);
  expect(receiver.received[1]?.id).toBe(id);

  const replaced = secretIn((await send("webhook/secret")).text);
  expect([replaced, "", secret]).toEqual([expect.stringMatching(/^whsec_/), secretIn(await settings()), secret]);
  expect(replaced).not.toBe(secret);
  expect(await settings()).toContain("also signed with each old secret for 24 hours: with the last one until");
  await send("webhook/remove");
  expect(await settings()).not.toContain("Remove the webhook");

  const entries = await readAudit(service.database, { organizationId, limit: 100 });
  expect(entries.filter(({ actor }) => actor === tokenId).map(({ action }) => action)).toEqual([
    "session.opened",
    "webhook.set",
    "webhook.tested",
    "webhook.replayed",
    "webhook.secret_replaced",
    "webhook.removed",
  ]);
  const everything =
    JSON.stringify(entries) + JSON.stringify([...service.apis, ...service.workers].flatMap(({ lines }) => lines));
  for (const kept of [secret, replaced, receiver.url]) expect(everything).not.toContain(kept);
});

test("an event that was given up and is sent again keeps the count of its attempts, and has ten more", async () => {
  const { organizationId, send, settings } = await signedIn();
  const eventId = await deliveredEvent(service.database, organizationId);
  await send("webhook", { url: receiver.url });
  const given = "attempts = 11, delivered_at = null, last_outcome = 'refused'";
  await service.database.query(`update webhook_events set ${given} where id = $1`, [eventId]);
  receiver.faults.push(answering(500));
  await send("webhook/replay", { event: eventId });
  const read =
    "select attempts, next_attempt_at - last_attempt_at < interval '30 seconds' as is_soon, last_status from webhook_events where id = $1";
  await service.until(async () => (await service.database.query(read, [eventId])).rows[0].last_status === 500);
  expect((await service.database.query(read, [eventId])).rows).toEqual([
    { attempts: 12, is_soon: true, last_status: 500 },
  ]);
  expect(await settings()).toContain('data-label="Attempts" class="number">12</td>');
});

test("an address that is no webhook is refused with the reason, and what the person wrote is still there", async () => {
  const { send } = await signedIn();
  const { status, text } = await send("webhook", { url: "https://ada:pw@hooks.example/" });
  expect(status).toBe(400);
  expect(text).toContain("Expected a URL without a user name or password.");
  expect(text).toContain('value="https://ada:pw@hooks.example/"');
});

test("an address is kept as URLs are written, whatever characters it has", async () => {
  const { send, settings } = await signedIn();
  expect((await send("webhook", { url: "https://HOOKS.example/a\u0000b/ä?x= 1" })).status).toBe(200);
  expect(await settings()).toContain('value="https://hooks.example/a%00b/%C3%A4?x=%201"');
});

test("the event of another organization cannot be sent again", async () => {
  const { send } = await signedIn();
  const other = await service.organization();
  const eventId = await deliveredEvent(service.database, other.organizationId);
  for (const event of [eventId, "", "evt_1", "\u0000"])
    expect((await send("webhook/replay", { event })).headers.get("location")).toBe("/billing/settings?done=gone");
});

test("after 200 changes in a day an account only ends what it has, such as a token, however many sign-ins came since or forms at once", async () => {
  const { organizationId, tokenId, person, send, settings } = await signedIn();
  await service.database.query(
    `insert into audit_entries (actor_kind, actor, action, organization_id)
     select 'account', $2, 'low_balance.set', $1 from generate_series(1, 199)`,
    [organizationId, tokenId],
  );
  await service.database.query(
    `insert into audit_entries (actor_kind, actor, action, organization_id)
     select 'account', $2, 'session.opened', $1 from generate_series(1, 2000)`,
    [organizationId, tokenId],
  );
  const forms = ["1", "2", "3", "5"].map((dollars) => send("low-balance", { dollars }));
  const statuses = (await Promise.all(forms)).map((answer) => answer.status);
  expect(statuses.toSorted((one, other) => one - other)).toEqual([303, 429, 429, 429]);
  const { status, text } = await send("low-balance", { dollars: "4" });
  expect([status, text]).toEqual([429, expect.stringContaining("Nothing was changed")]);
  expect(await settings()).not.toContain('value="4.00"');
  const revoked = await person.post("/billing/tokens/revoke", { organization: organizationId, token: tokenId });
  expect([revoked.status, revoked.headers.get("location")]).toEqual([303, "/billing"]);
});

test("where the operator has turned webhooks off, the page says so and takes no address", async () => {
  await service.startApi({ API_PORT: "0", WEBHOOK_TARGETS: "none" });
  const { send, settings } = await signedIn(service.apis.length - 1);
  expect(await settings()).toContain("has turned webhooks off");
  expect((await send("webhook", { url: receiver.url })).status).toBe(400);
});
