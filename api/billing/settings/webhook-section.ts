import type { WebhookEvent } from "../../../shared/webhooks/webhook-events.ts";
import type { Webhook } from "../../../shared/webhooks/webhooks.ts";
import { dayOf, timeOf } from "../../pages/format.ts";
import { html, type Html } from "../../pages/html.ts";
import { organizationField } from "../frame/organization-field.ts";

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
<h2 id="webhook-title">Webhook</h2>
${isOff ? html`<p>The operator of this service has turned webhooks off.</p>` : addressForm(shown)}
${secret !== undefined && html`<div class="notice"><p>The secret of the webhook. It is shown only now: copy it to your program.</p><p><code>${secret}</code></p></div>`}
${
  webhook &&
  html`<div class="row">
${!isOff && button("test", "Send a test event", organizationId)}
${button("secret", "New secret", organizationId)}
${button("remove", "Remove the webhook", organizationId, "danger")}
</div>`
}
${webhook?.oldSecretEndsAt instanceof Date && html`<p class="aside">Events are signed with the old secret too until ${momentOf(webhook.oldSecretEndsAt)}.</p>`}
${events.length > 0 && eventTable(events, organizationId, webhook !== undefined && !isOff)}
</section>`;
}

function addressForm({ organizationId, webhook, field }: Shown): Html {
  return html`<p>Events are sent to this address of your program, with a signature.</p>
<form method="post" action="/billing/settings/webhook">
${organizationField(organizationId)}
<label for="webhook-url">Address</label>
<div class="row"><input id="webhook-url" class="wide" name="url" inputmode="url" autocomplete="off" spellcheck="false" maxlength="2000" value="${field?.text ?? webhook?.url ?? ""}" aria-describedby="webhook-hint"${field && html` aria-invalid="true"`}>
<button>Save</button></div>
<p id="webhook-hint" class="aside"${field && html` role="alert"`}>${field?.problem ?? "Begins with https://. The secret appears when you save the first address."}</p>
</form>`;
}

function button(action: string, label: string, organizationId: string, look = "plain"): Html {
  return html`<form method="post" action="/billing/settings/webhook/${action}">${organizationField(organizationId)}<button class="${look}">${label}</button></form>`;
}

function eventTable(events: readonly WebhookEvent[], organizationId: string, canSend: boolean): Html {
  return html`<h3 id="events-title">Newest events</h3>
<div class="scroll" tabindex="0" role="group" aria-labelledby="events-title"><table>
<thead><tr><th scope="col">Time (UTC)</th><th scope="col">Event</th><th scope="col">State</th><th scope="col">Attempts</th><th scope="col">Send again</th></tr></thead>
<tbody>${events.map(
    (event) => html`<tr>
<td class="when">${momentOf(event.createdAt)}</td>
<td>${event.type} <code>${event.eventId}</code></td>
<td>${stateOf(event)}</td>
<td class="number">${event.attempts}</td>
<td>${
      canSend
        ? html`<form method="post" action="/billing/settings/webhook/replay">${organizationField(organizationId)}<input type="hidden" name="event" value="${event.eventId}"><button class="plain" aria-label="Send again: ${event.eventId}">Send again</button></form>`
        : "–"
    }</td>
</tr>`,
  )}</tbody>
</table></div>`;
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
