import type { Config } from "../../../shared/config.ts";
import type { Database } from "../../../shared/database/pool.ts";
import { readOwnLimits } from "../../organizations/limits.ts";
import { changeLimitsRecorded } from "../../organizations/audited-changes.ts";
import { readThreshold } from "../../../shared/webhooks/low-balance.ts";
import {
  changeSecret,
  changeThreshold,
  changeWebhook,
  dropWebhook,
  replayWebhookEvent,
  testWebhook,
} from "../../webhooks/audited-changes.ts";
import { listEvents } from "../../../shared/webhooks/webhook-events.ts";
import { targetProblem } from "../../../shared/webhooks/webhook-target.ts";
import { readWebhook } from "../../../shared/webhooks/webhooks.ts";
import { changeAccount } from "../frame/account-change.ts";
import { type AccountView, organizationField } from "../frame/account-frame.ts";
import type { AccountHandlers, FormRequest, PageRequest } from "../frame/account-handlers.ts";
import { limitsSection, readLimitFields } from "./limits.ts";
import { type WebhookField, webhookSection } from "./webhook-section.ts";
import { orPostgresUnavailable } from "../../datastore-unavailable.ts";
import { newForm, parseDollars, type SentForm } from "../../pages/form.ts";
import { amount, dollars } from "../../pages/format.ts";
import { html, type Html } from "../../pages/html.ts";

const eventsShown = 10;

/** What the forms of the page need. */
interface SettingsParts {
  account: AccountHandlers;
  database: Database;
  config: Pick<Config, "WEBHOOK_TARGETS">;
  /** Makes every API drop its cache of organizations and tokens. It is best effort: the entries expire by themselves. */
  announce: () => Promise<void>;
}

/** What a form that was just sent adds to the page: the value that was refused and why, or a secret that is shown once. */
interface SettingsNews {
  limits?: SentForm;
  lowBalance?: LowBalanceField;
  webhook?: WebhookField;
  secret?: string | undefined;
}

/** Messages for the address that a form leads back to. */
const done = {
  limits: "The limits are saved.",
  threshold: "The threshold is saved.",
  address: "The address of the webhook is saved. Its secret is the same.",
  removed: "The webhook is removed. Events that waited are not sent any more.",
  test: "A test event is on its way.",
  again: "The event is on its way again.",
  gone: "This event cannot be sent again: it is older than 30 days, or the webhook was removed.",
  none: "There is no webhook. Set its address first.",
  many: "Your organization has had its 100 events of the last 24 hours.",
};
const messages = new Map<unknown, string>(Object.entries(done));

/** GET /billing/settings: what a payer sets. */
export function writeSettings(parts: SettingsParts) {
  return async (asked: PageRequest): Promise<AccountView> => settingsView(parts, asked, {});
}

async function settingsView(
  { database, config }: SettingsParts,
  { request, caller: { organizationId } }: PageRequest,
  news: SettingsNews,
): Promise<AccountView> {
  const [limits, thresholdMils, webhook, events] = await orPostgresUnavailable(
    Promise.all([
      readOwnLimits(database, "organization", organizationId),
      readThreshold(database, organizationId),
      readWebhook(database, organizationId),
      listEvents(database, organizationId, eventsShown),
    ]),
  );
  const message = request.method === "GET" ? messages.get(request.query["done"]) : undefined;
  return {
    path: "/billing/settings",
    title: "Settings",
    body: html`${message !== undefined && html`<p class="notice" role="status">${message}</p>`}
${limits && limitsSection(limits, news.limits ?? newForm)}
${lowBalanceSection({ organizationId, thresholdMils, field: news.lowBalance })}
${webhookSection({ organizationId, webhook, events, field: news.webhook, secret: news.secret, isOff: config.WEBHOOK_TARGETS === "none" })}`,
  };
}

/** Leads the browser back to the page, so that loading it anew does not send the form again. */
function leadBack({ response }: FormRequest, what: keyof typeof done): void {
  response.writeHead(303, { Location: `/billing/settings?done=${what}` }).end();
}

/** Sends the page as the answer to a form. */
async function answerForm(
  parts: SettingsParts,
  asked: FormRequest,
  { status, ...news }: SettingsNews & { status: number },
): Promise<void> {
  parts.account.send(asked, status, await settingsView(parts, asked, news));
}

/** A threshold that was not accepted: what the person wrote, and why. */
interface LowBalanceField {
  text: string;
  problem: string;
}

/** The form for the balance below which the payer is notified. */
function lowBalanceSection(shown: {
  organizationId: string;
  thresholdMils: number | null;
  field: LowBalanceField | undefined;
}): Html {
  const { organizationId, thresholdMils, field } = shown;
  const value = field?.text ?? (thresholdMils === null ? "" : dollars(thresholdMils).replace("$", ""));
  return html`<section id="low-balance-setting" class="setting" aria-labelledby="low-balance-title">
<div class="intro"><h2 id="low-balance-title">Low balance</h2>
<p class="aside">While the balance is below this amount, the overview says so. When it falls below, your webhook gets an event.</p></div>
<form method="post" action="/billing/settings/low-balance">
${organizationField(organizationId)}
<label for="threshold">Threshold in US dollars</label>
<div class="row"><input id="threshold" name="dollars" inputmode="decimal" autocomplete="off" value="${value}" aria-describedby="threshold-hint${field && " threshold-problem"}"${field && html` aria-invalid="true"`}>
<button>Save</button></div>
${field && html`<p id="threshold-problem" class="problem" role="alert">${field.problem}</p>`}
<p id="threshold-hint" class="aside">${!field && "Such as 5 or 7.50. Empty for none."}${thresholdMils !== null && html` Now: ${amount(thresholdMils)}.`}</p>
</form>
</section>`;
}

/** POST /billing/settings/limits: the limits of the organization; an empty field removes one. */
export function handleLimitsForm(parts: SettingsParts) {
  return async (asked: FormRequest): Promise<void> => {
    const { change, problems } = readLimitFields(asked.form);
    if (Object.keys(problems).length > 0)
      return answerForm(parts, asked, { status: 400, limits: { values: asked.form, problems } });
    const owner = { owner: "organization", id: asked.caller.organizationId } as const;
    await changeAccount(parts.database, asked, (transaction, changer) =>
      changeLimitsRecorded(transaction, changer, owner, change),
    );
    await parts.announce();
    leadBack(asked, "limits");
  };
}

const notAThreshold = "Expected an amount above zero with at most three decimals, such as 5 or 7.50, or nothing.";

/** POST /billing/settings/low-balance: sets the threshold, or removes it with an empty field. */
export function handleLowBalanceForm(parts: SettingsParts) {
  return async (asked: FormRequest): Promise<void> => {
    const text = (asked.form.get("dollars") ?? "").trim();
    const mils = text === "" ? null : parseDollars(text);
    if (mils === undefined || mils === 0)
      return answerForm(parts, asked, { status: 400, lowBalance: { text, problem: notAThreshold } });
    await changeAccount(parts.database, asked, (transaction, changer) => changeThreshold(transaction, changer, mils));
    leadBack(asked, "threshold");
  };
}

const eventIds = /^evt_[0-7][0-9a-z]{25}$/;

/** POST /billing/settings/webhook: sets the address. The page that answers the first one shows the secret, once. */
export function handleWebhookForm(parts: SettingsParts) {
  return async (asked: FormRequest): Promise<void> => {
    const text = (asked.form.get("url") ?? "").trim();
    const problem = targetProblem(text, parts.config.WEBHOOK_TARGETS);
    if (problem !== undefined) return answerForm(parts, asked, { status: 400, webhook: { text, problem } });
    const secret = await changeAccount(parts.database, asked, (transaction, changer) =>
      // As URLs are written: without characters that Postgres has no text for.
      changeWebhook(transaction, changer, new URL(text).href),
    );
    if (secret === undefined) return leadBack(asked, "address");
    await answerForm(parts, asked, { status: 200, secret });
  };
}

/** POST /billing/settings/webhook/secret: replaces the secret, and shows the new one, once. */
export function handleSecretForm(parts: SettingsParts) {
  return async (asked: FormRequest): Promise<void> => {
    const secret = await changeAccount(parts.database, asked, changeSecret);
    if (secret === undefined) return leadBack(asked, "none");
    await answerForm(parts, asked, { status: 200, secret });
  };
}

/** POST /billing/settings/webhook/remove */
export function handleRemoveForm({ database }: SettingsParts) {
  return async (asked: FormRequest): Promise<void> => {
    await changeAccount(database, asked, dropWebhook);
    leadBack(asked, "removed");
  };
}

/** POST /billing/settings/webhook/test: records an event, which a worker sends within some seconds. */
export function handleTestForm({ database }: SettingsParts) {
  return async (asked: FormRequest): Promise<void> => {
    const recorded = await changeAccount(database, asked, testWebhook);
    if (recorded === "none") return leadBack(asked, "none");
    leadBack(asked, recorded === "too_many" ? "many" : "test");
  };
}

/** POST /billing/settings/webhook/replay: sends an event again. */
export function handleReplayForm({ database }: SettingsParts) {
  return async (asked: FormRequest): Promise<void> => {
    const eventId = asked.form.get("event") ?? "";
    if (!eventIds.test(eventId)) return leadBack(asked, "gone");
    const replayed = await changeAccount(database, asked, (transaction, changer) =>
      replayWebhookEvent(transaction, changer, eventId),
    );
    leadBack(asked, replayed && replayed !== "no_webhook" ? "again" : "gone");
  };
}
