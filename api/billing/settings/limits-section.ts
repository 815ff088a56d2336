import type { OwnLimits } from "../../../shared/organizations/limits.ts";
import type { SentForm } from "../../pages/form-fields.ts";
import { amount } from "../../pages/format.ts";
import { html, type Html } from "../../pages/html.ts";
import { organizationField } from "../frame/account-frame.ts";
import { limitFields } from "./limit-fields.ts";

/** The form for the limits of the organization. */
export function limitsSection(limits: OwnLimits, sent: SentForm): Html {
  return html`<section class="setting" aria-labelledby="limits-title">
<div class="intro"><h2 id="limits-title">Spending limits</h2>
<p class="aside">What all tokens of the organization may spend together. Each of the <a href="/billing/tokens">tokens</a> can have limits of its own.</p></div>
<div class="settings">${spentSoFar(limits)}
<form class="form" method="post" action="/billing/settings/limits">
${organizationField(limits.organizationId)}
${limitFields(sent, limits)}
<p class="aside">A search beyond a limit gets 402 and costs nothing. Every API applies a change within two seconds.</p>
<button>Save limits</button>
</form></div></section>`;
}

/** What was spent by now; nothing while it is not counted, because there never was a limit. */
export function spentSoFar({ spentTodayMils, spentThisMonthMils }: OwnLimits): Html | false {
  if (spentTodayMils === null || spentThisMonthMils === null) return false;
  return html`<p>Spent today ${amount(spentTodayMils)}, this month ${amount(spentThisMonthMils)}.</p>`;
}
