import {
  changeSecret,
  changeWebhook,
  dropWebhook,
  replayWebhookEvent,
  testWebhook,
} from "../../../shared/webhooks/recorded-changes.ts";
import { targetProblem } from "../../../shared/webhooks/webhook-target.ts";
import type { FormRequest } from "../frame/account-handlers.ts";
import { changeAccount } from "../frame/account-change.ts";
import { answerForm, leadBack, type SettingsParts } from "./settings.ts";

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
