import type { Config } from "../../../shared/config.ts";
import type { Database } from "../../../shared/database/pool.ts";
import { readOwnLimits } from "../../../shared/organizations/limits.ts";
import { readThreshold } from "../../../shared/webhooks/low-balance.ts";
import { listEvents } from "../../../shared/webhooks/webhook-events.ts";
import { readWebhook } from "../../../shared/webhooks/webhooks.ts";
import { orPostgresUnavailable } from "../../datastore-unavailable.ts";
import { newForm, type SentForm } from "../../pages/form-fields.ts";
import { html } from "../../pages/html.ts";
import type { AccountView } from "../frame/account-frame.ts";
import type { AccountHandlers, FormRequest, PageRequest } from "../frame/account-handlers.ts";
import { limitsSection } from "./limits-section.ts";
import { type LowBalanceField, lowBalanceSection } from "./low-balance-section.ts";
import { type WebhookField, webhookSection } from "./webhook-section.ts";

const eventsShown = 10;

/** What the forms of the page need. */
export interface SettingsParts {
  account: AccountHandlers;
  database: Database;
  config: Pick<Config, "WEBHOOK_TARGETS">;
  /** Makes every API drop its cache of organizations and tokens. It is best effort: the entries expire by themselves. */
  announce: () => Promise<void>;
}

/** What a form that was just sent adds to the page: the value that was refused and why, or a secret that is shown once. */
export interface SettingsNews {
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

export async function settingsView(
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
export function leadBack({ response }: FormRequest, what: keyof typeof done): void {
  response.writeHead(303, { Location: `/billing/settings?done=${what}` }).end();
}

/** Sends the page as the answer to a form. */
export async function answerForm(
  parts: SettingsParts,
  asked: FormRequest,
  { status, ...news }: SettingsNews & { status: number },
): Promise<void> {
  parts.account.send(asked, status, await settingsView(parts, asked, news));
}
