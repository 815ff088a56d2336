import type { Config } from "../../../shared/config.ts";
import type { Database } from "../../../shared/database/pool.ts";
import { idForm } from "../../../shared/ids.ts";
import { readThreshold, setThreshold } from "../../../shared/webhooks/low-balance.ts";
import { listEvents, replayEvent, type WebhookEvent } from "../../../shared/webhooks/webhook-events.ts";
import {
  readWebhook,
  removeWebhook,
  replaceSecret,
  setWebhook,
  targetProblem,
  type Webhook,
} from "../../../shared/webhooks/webhooks.ts";
import { readKeptDays, setKeptDays } from "../../../shared/credits/kept-answers.ts";
import { changeLimitsRecorded, testWebhook } from "../../organizations/audited-changes.ts";
import { type OwnLimits, readOwnLimits } from "../../organizations/limits.ts";
import { LimitsTooHigh } from "../../tokens/token-family.ts";
import { type AccountView, buttonForm, organizationField, removalForm, statusNotice } from "../frame/account-frame.ts";
import {
  type AccountHandlers,
  changeAccount,
  type FormRequest,
  leadTo,
  type PageRequest,
} from "../frame/account-handlers.ts";
import { dollarsOrNone, limitProblems, limitsSaved, limitsSection, readLimitChange } from "./limits.ts";
import { amountRule, dollarsField, newForm, parseDollars, type SentForm, textField } from "../../pages/form.ts";
import { shortMomentOf } from "../../pages/format.ts";
import { html, type Html } from "../../pages/html.ts";

const eventsShown = 10;

/** What the forms of the page need. */
export interface SettingsParts {
  account: AccountHandlers;
  database: Database;
  config: Pick<Config, "WEBHOOK_TARGETS" | "KEPT_ANSWERS_DAYS">;
  /** Makes every API drop its cache of organizations and tokens. Best effort: the entries expire by themselves. */
  announce: () => Promise<void>;
}

/** Messages for the address that a form leads back to. */
const done = {
  kept: "Saved. Older answers are deleted within minutes.",
  address: "Webhook address saved. Its secret has not changed.",
  removed: "Webhook removed. Waiting events will not be sent.",
  test: "A test event is on its way.",
  again: "Event queued again.",
  gone: "This event cannot be sent again: it is older than 30 days, or the webhook was removed.",
  none: "There is no webhook. Set its address first.",
  many: "Your organization has reached its limit of 100 test events in 24 hours.",
};
const messages = new Map<unknown, string>(Object.entries(done));

/** The message for the address that a form led back to. It repeats amounts as they were understood. */
function messageOf(what: unknown, limits: OwnLimits | undefined, thresholdMils: number | null): string | undefined {
  if (what === "limits") return limits && limitsSaved(limits);
  return what === "threshold" ? `Threshold saved: ${dollarsOrNone(thresholdMils)}.` : messages.get(what);
}

/**
 * GET /billing/settings: spending limits, low balance and webhook.
 * @param shown a form that was refused, or a secret that was just made and is never shown again.
 */
export async function writeSettings(
  { database, config }: SettingsParts,
  { request, caller: { organizationId } }: PageRequest,
  { sent = newForm, secret }: { sent?: SentForm; secret?: string } = {},
): Promise<AccountView> {
  const [limits, thresholdMils, webhook, events, keptDays = 0] = await Promise.all([
    readOwnLimits(database, "organization", organizationId),
    readThreshold(database, organizationId),
    readWebhook(database, organizationId),
    listEvents(database, organizationId, eventsShown),
    readKeptDays(database, organizationId),
  ]);
  const isOff = config.WEBHOOK_TARGETS === "none";
  return {
    path: "/billing/settings",
    title: "Settings",
    body: html`${request.method === "GET" && statusNotice(messageOf(request.query["done"], limits, thresholdMils))}
${limits && limitsSection(limits, sent)}
<section class="setting" aria-labelledby="low-balance-title">
<div class="intro"><h2 id="low-balance-title">Low balance</h2>
<p class="aside">The overview shows a warning while the balance is below this amount. Your webhook receives an event when the balance falls below it.</p></div>
<form class="form" method="post" action="/billing/settings/low-balance">
${organizationField(organizationId)}
${dollarsField(sent, { name: "dollars", label: "Threshold in US dollars", hint: "For example 5 or 7.50. Leave empty for no warning.", mils: thresholdMils })}
<button>Save threshold</button>
</form>
</section>
${config.KEPT_ANSWERS_DAYS > 0 && keptSection(organizationId, sent, { keptDays, daysMax: config.KEPT_ANSWERS_DAYS })}
${webhookSection({ organizationId, webhook, events, sent, secret, isOff })}`,
  };
}

/** Leads the browser back to the page, so that a reload does not send the form again. */
const leadBack = ({ response }: FormRequest, what: keyof typeof done | "limits" | "threshold") =>
  leadTo(response, `/billing/settings?done=${what}`);

/** Sends the page again for a form that was refused, with the value and its problem. */
async function refuse(parts: SettingsParts, asked: FormRequest, problems: Record<string, string>): Promise<void> {
  parts.account.send(asked, 400, await writeSettings(parts, asked, { sent: { values: asked.form, problems } }));
}

/** POST /billing/settings/limits: the limits of the organization; an empty field removes one. */
export async function handleLimitsForm(parts: SettingsParts, asked: FormRequest): Promise<void> {
  const { change, problems } = readLimitChange(asked.form);
  if (Object.keys(problems).length > 0) return refuse(parts, asked, problems);
  const owner = { owner: "organization", id: asked.caller.organizationId } as const;
  try {
    await changeAccount(parts.database, asked, (transaction, changer) =>
      changeLimitsRecorded(transaction, changer, owner, change),
    );
  } catch (error) {
    if (!(error instanceof LimitsTooHigh)) throw error;
    return refuse(parts, asked, limitProblems(error.excesses, asked.caller.tokenId));
  }
  await parts.announce();
  leadBack(asked, "limits");
}

function keptSection(
  organizationId: string,
  sent: SentForm,
  { keptDays, daysMax }: { keptDays: number; daysMax: number },
): Html {
  const attributes = html` inputmode="numeric" maxlength="2"`;
  return html`<section class="setting" aria-labelledby="kept-title">
<div class="intro"><h2 id="kept-title">Kept answers</h2>
<p class="aside">Answers that you have paid for can be kept, so that a later search with <code>maxAgeSeconds</code> finds them. Without this, nothing of an answer is kept, except for a day under an Idempotency-Key.</p></div>
<form class="form" method="post" action="/billing/settings/kept-answers">
${organizationField(organizationId)}
${textField(sent, { name: "days", label: "Days", hint: `0 to ${daysMax}. 0 keeps nothing.`, value: String(keptDays), attributes })}
<button>Save days</button>
</form>
</section>`;
}

/** POST /billing/settings/kept-answers: for how many days answers are kept. */
export async function handleKeptAnswersForm(parts: SettingsParts, asked: FormRequest): Promise<void> {
  const daysMax = parts.config.KEPT_ANSWERS_DAYS;
  const text = (asked.form.get("days") ?? "").trim();
  const days = /^\d{1,2}$/.test(text) ? Number(text) : Number.NaN;
  if (!(days <= daysMax)) return refuse(parts, asked, { days: `Enter a whole number from 0 to ${daysMax}.` });
  await changeAccount(parts.database, asked, (transaction, changer) => setKeptDays(transaction, changer, days));
  await parts.announce();
  leadBack(asked, "kept");
}

const notAThreshold = `Enter an amount above zero, such as 5 or 7.50, or leave the field empty. ${amountRule}`;

/** POST /billing/settings/low-balance: sets the threshold, or removes it with an empty field. */
export async function handleLowBalanceForm(parts: SettingsParts, asked: FormRequest): Promise<void> {
  const text = (asked.form.get("dollars") ?? "").trim();
  const mils = text === "" ? null : parseDollars(text);
  if (mils === undefined || mils === 0) return refuse(parts, asked, { dollars: notAThreshold });
  await changeAccount(parts.database, asked, (transaction, changer) => setThreshold(transaction, changer, mils));
  leadBack(asked, "threshold");
}

/** POST /billing/settings/webhook: sets the address. The answer to the first one shows the secret, once. */
export async function handleWebhookForm(parts: SettingsParts, asked: FormRequest): Promise<void> {
  const text = (asked.form.get("url") ?? "").trim();
  const problem = targetProblem(text, parts.config.WEBHOOK_TARGETS);
  if (problem !== undefined) return refuse(parts, asked, { url: problem });
  const secret = await changeAccount(parts.database, asked, (transaction, changer) =>
    // Normalized as a URL, without characters that Postgres cannot store.
    setWebhook(transaction, changer, new URL(text).href),
  );
  await answerWithSecret(parts, asked, secret, "address");
}

/** POST /billing/settings/webhook/secret: replaces the secret, and shows the new one, once. */
export async function handleSecretForm(parts: SettingsParts, asked: FormRequest): Promise<void> {
  return answerWithSecret(parts, asked, await changeAccount(parts.database, asked, replaceSecret), "none");
}

async function answerWithSecret(
  parts: SettingsParts,
  asked: FormRequest,
  secret: string | undefined,
  without: keyof typeof done,
): Promise<void> {
  if (secret === undefined) leadBack(asked, without);
  else parts.account.send(asked, 200, await writeSettings(parts, asked, { secret }));
}

/** POST /billing/settings/webhook/remove */
export async function handleRemoveForm({ database }: SettingsParts, asked: FormRequest): Promise<void> {
  await changeAccount(database, asked, removeWebhook, { isEnd: true });
  leadBack(asked, "removed");
}

/** POST /billing/settings/webhook/test: records an event, which a worker sends within some seconds. */
export async function handleTestForm({ database }: SettingsParts, asked: FormRequest): Promise<void> {
  const recorded = await changeAccount(database, asked, testWebhook);
  if (recorded === "none") return leadBack(asked, "none");
  leadBack(asked, recorded === "too_many" ? "many" : "test");
}

/** POST /billing/settings/webhook/replay: sends an event again. */
export async function handleReplayForm({ database }: SettingsParts, asked: FormRequest): Promise<void> {
  const eventId = asked.form.get("event") ?? "";
  if (!idForm("evt").test(eventId)) return leadBack(asked, "gone");
  const replayed = await changeAccount(database, asked, (transaction, changer) =>
    replayEvent(transaction, changer, eventId),
  );
  leadBack(asked, replayed && replayed !== "no_webhook" ? "again" : "gone");
}

function webhookSection(shown: {
  organizationId: string;
  webhook: Webhook | undefined;
  events: readonly WebhookEvent[];
  sent: SentForm;
  secret: string | undefined;
  /** Whether the operator has turned webhooks off. */
  isOff: boolean;
}): Html {
  const { organizationId, webhook, events, sent, secret, isOff } = shown;
  const button = (action: string, label: string) =>
    buttonForm(`/billing/settings/webhook/${action}`, label, { organizationId });
  const consequence = "Waiting events will not be sent, and the secret is deleted: a new webhook gets another one.";
  return html`<section id="webhook" class="setting" aria-labelledby="webhook-title">
<div class="intro"><h2 id="webhook-title">Webhook</h2>
<p class="aside">${isOff ? "The operator of this service has turned webhooks off." : "Serpmill sends signed events to this address."}</p></div>
<div class="settings">${!isOff && addressForm(organizationId, webhook, sent)}
${secret !== undefined && html`<div class="notice"><p>This is the secret of the webhook. It is shown only now: copy it to your program.</p><p class="copy"><code class="secret" id="webhook-secret" tabindex="0">${secret}</code><button type="button" class="plain" data-copy="webhook-secret" hidden>Copy</button></p></div>`}
${
  webhook &&
  html`<div class="row">
${!isOff && button("test", "Send a test event")}
${button("secret", "New secret")}
</div>
${removalForm("/billing/settings/webhook/remove", "Remove the webhook", { organizationId, consequence })}`
}
${webhook?.oldSecretEndsAt instanceof Date && html`<p class="aside">Events are also signed with each old secret for 24 hours: with the last one until ${shortMomentOf(webhook.oldSecretEndsAt)}.</p>`}
</div>
${events.length > 0 && eventTable(events, organizationId, webhook !== undefined && !isOff)}
</section>`;
}

function addressForm(organizationId: string, webhook: Webhook | undefined, sent: SentForm): Html {
  const hint = "Begins with https://. The secret appears when you save the first address.";
  const attributes = html` inputmode="url" spellcheck="false" maxlength="2000"`;
  return html`<form class="form" method="post" action="/billing/settings/webhook">
${organizationField(organizationId)}
${textField(sent, { name: "url", label: "Address", hint, value: webhook?.url, attributes })}
<button>Save address</button>
</form>`;
}

function eventTable(events: readonly WebhookEvent[], organizationId: string, canSend: boolean): Html {
  return html`<div class="whole"><h3 id="events-title">Newest events</h3>
<div class="scroll" tabindex="0" role="group" aria-labelledby="events-title"><table class="stacked">
<thead><tr><th scope="col">Time (UTC)</th><th scope="col">Event</th><th scope="col">State</th><th scope="col" class="number">Attempts</th><th scope="col"><span class="hidden">Action</span></th></tr></thead>
<tbody>${events.map(
    (event) => html`<tr>
<td class="when" data-label="Time (UTC)">${shortMomentOf(event.createdAt)}</td>
<td data-label="Event">${event.type} <code>${event.eventId}</code></td>
<td data-label="State">${stateOf(event)}</td>
<td data-label="Attempts" class="number">${event.attempts}</td>
<td class="action">${
      canSend
        ? html`<form method="post" action="/billing/settings/webhook/replay">${organizationField(organizationId)}<input type="hidden" name="event" value="${event.eventId}"><button class="plain" aria-label="Send again: ${event.eventId}">Send again</button></form>`
        : "–"
    }</td>
</tr>`,
  )}</tbody>
</table></div></div>`;
}

/** `Delivered …`, `Next attempt … (the receiver answered: 500)`. */
function stateOf({ state, deliveredAt, nextAttemptAt, lastOutcome, lastStatus }: WebhookEvent): string {
  const last =
    lastOutcome === null
      ? ""
      : ` (${outcomes[lastOutcome] ?? lastOutcome}${lastStatus === null ? "" : `: ${lastStatus}`})`;
  if (state === "delivered" && deliveredAt) return `Delivered ${shortMomentOf(deliveredAt)}`;
  if (state === "waiting" && nextAttemptAt)
    return lastOutcome === null ? "On its way" : `Next attempt ${shortMomentOf(nextAttemptAt)}${last}`;
  return `Given up${last}`;
}

const outcomes: Record<string, string> = {
  delivered: "delivered",
  refused: "the receiver answered",
  timeout: "no answer within 10 s",
  unreachable: "the address could not be reached",
  address_refused: "the address is in a private network",
};
