import type { OwnLimits } from "../../../shared/organizations/limits.ts";
import type { SentForm } from "../../pages/form-fields.ts";
import { amount } from "../../pages/format.ts";
import { html, type Html } from "../../pages/html.ts";
import { organizationField } from "../frame/organization-field.ts";
import { limitFields } from "./limit-fields.ts";

/** The form for the limits of the organization. */
export function limitsSection(limits: OwnLimits, sent: SentForm): Html {
  return html`<section class="setting" aria-labelledby="limits-title">
<h2 id="limits-title">Limits of spending</h2>
<p>What all tokens of the organization spend together. A limit of one token is on <a href="/billing/tokens">its page</a>.</p>
${spentSoFar(limits)}
<form class="form" method="post" action="/billing/settings/limits">
${organizationField(limits.organizationId)}
${limitFields(sent, limits)}
<p class="aside">A search beyond a limit gets 402 and costs nothing. Every API applies a change within two seconds.</p>
<button>Save limits</button>
</form></section>`;
}

/** What was spent by now; nothing while it is not counted, because there never was a limit. */
export function spentSoFar({ spentTodayMils, spentThisMonthMils }: OwnLimits): Html | false {
  if (spentTodayMils === null || spentThisMonthMils === null) return false;
  return html`<p>Spent today ${amount(spentTodayMils)}, this month ${amount(spentThisMonthMils)}.</p>`;
}
