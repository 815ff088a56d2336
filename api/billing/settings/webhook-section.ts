import type { WebhookEvent } from "../../../shared/webhooks/webhook-events.ts";
import type { Webhook } from "../../../shared/webhooks/webhooks.ts";
import { organizationField } from "../frame/account-frame.ts";
import { dayOf, timeOf } from "../../pages/format.ts";
import { html, type Html } from "../../pages/html.ts";

/** An address that was not accepted: what the person wrote, and why. */
export interface WebhookField {
  text: string;
  problem: string;
}

interface Shown {
  organizationId: string;
  webhook: Webhook | undefined;
  events: readonly WebhookEvent[];
  field: WebhookField | undefined;
  /** A secret that was just made. It is never shown again. */
  secret: string | undefined;
  /** Whether the operator has turned webhooks off. */
  isOff: boolean;
}

/** The webhook of the organization, and the newest events. */
export function webhookSection(shown: Shown): Html {
  const { organizationId, webhook, events, secret, isOff } = shown;
  return html`<section id="webhook" class="setting" aria-labelledby="webhook-title">
<div class="intro"><h2 id="webhook-title">Webhook</h2>
<p class="aside">${isOff ? "The operator of this service has turned webhooks off." : "Events are sent to this address of your program, with a signature."}</p></div>
<div class="settings">${!isOff && addressForm(shown)}
${secret !== undefined && html`<div class="notice"><p>The secret of the webhook. It is shown only now: copy it to your program.</p><p class="copy"><code class="secret" id="webhook-secret" tabindex="0">${secret}</code><button type="button" class="plain" data-copy="webhook-secret" hidden>Copy</button></p></div>`}
${
  webhook &&
  html`<div class="row">
${!isOff && button("test", "Send a test event", organizationId)}
${button("secret", "New secret", organizationId)}
${button("remove", "Remove the webhook", organizationId, "danger")}
</div>`
}
${webhook?.oldSecretEndsAt instanceof Date && html`<p class="aside">Events are signed with the old secret too until ${momentOf(webhook.oldSecretEndsAt)}.</p>`}
</div>
${events.length > 0 && eventTable(events, organizationId, webhook !== undefined && !isOff)}
</section>`;
}

function addressForm({ organizationId, webhook, field }: Shown): Html {
  return html`<form method="post" action="/billing/settings/webhook">
${organizationField(organizationId)}
<label for="webhook-url">Address</label>
<div class="row"><input id="webhook-url" class="wide" name="url" inputmode="url" autocomplete="off" spellcheck="false" maxlength="2000" value="${field?.text ?? webhook?.url ?? ""}" aria-describedby="webhook-hint${field && " webhook-problem"}"${field && html` aria-invalid="true"`}>
<button>Save</button></div>
${field && html`<p id="webhook-problem" class="problem" role="alert">${field.problem}</p>`}
<p id="webhook-hint" class="aside">Begins with https://. The secret appears when you save the first address.</p>
</form>`;
}

function button(action: string, label: string, organizationId: string, look = "plain"): Html {
  return html`<form method="post" action="/billing/settings/webhook/${action}">${organizationField(organizationId)}<button class="${look}">${label}</button></form>`;
}

function eventTable(events: readonly WebhookEvent[], organizationId: string, canSend: boolean): Html {
  return html`<div class="whole"><h3 id="events-title">Newest events</h3>
<div class="scroll" tabindex="0" role="group" aria-labelledby="events-title"><table class="stacked">
<thead><tr><th scope="col">Time (UTC)</th><th scope="col">Event</th><th scope="col">State</th><th scope="col" class="number">Attempts</th><th scope="col"><span class="hidden">Action</span></th></tr></thead>
<tbody>${events.map(
    (event) => html`<tr>
<td class="when" data-label="Time (UTC)">${momentOf(event.createdAt)}</td>
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

/** `delivered at …`, `waits until …: 500 from the receiver`. */
function stateOf({ state, deliveredAt, nextAttemptAt, lastOutcome, lastStatus }: WebhookEvent): string {
  const last =
    lastOutcome === null
      ? ""
      : ` (${outcomes[lastOutcome] ?? lastOutcome}${lastStatus === null ? "" : `: ${lastStatus}`})`;
  if (state === "delivered" && deliveredAt) return `Delivered ${momentOf(deliveredAt)}`;
  if (state === "waiting" && nextAttemptAt)
    return lastOutcome === null ? "On its way" : `Next attempt ${momentOf(nextAttemptAt)}${last}`;
  return `Given up${last}`;
}

const outcomes: Record<string, string> = {
  delivered: "delivered",
  refused: "the receiver answered",
  timeout: "no answer within 10 s",
  unreachable: "the address was not reached",
  address_refused: "the address is in a private network",
};

const momentOf = (at: Date) => `${dayOf(at)} ${timeOf(at)}`;
