import type { OwnLimits } from "../../organizations/limits.ts";
import type { Excess } from "../../tokens/token-family.ts";
import { organizationField } from "../frame/account-frame.ts";
import { parseDollars, type SentForm, textField } from "../../pages/form.ts";
import { amount, dollars } from "../../pages/format.ts";
import { html, type Html } from "../../pages/html.ts";

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

const problem = "Expected dollars with up to three decimals, such as 25 or 0.505, or nothing for no limit.";

/** The limits of an organization or a token in mils; null for none. */
interface Limits {
  dayLimitMils: number | null;
  monthLimitMils: number | null;
}

/** The fields of both limits. */
export function limitFields(sent: SentForm, { dayLimitMils, monthLimitMils }: Limits): Html {
  const field = (name: string, label: string, mils: number | null) =>
    textField(sent, {
      name,
      label,
      hint: "In dollars. Empty for no limit.",
      value: mils === null ? "" : dollars(mils).slice(1),
      attributes: html` inputmode="decimal" size="12"`,
    });
  return html`<div class="fields">${field("day", "At most a day (UTC)", dayLimitMils)}
${field("month", "At most a calendar month (UTC)", monthLimitMils)}</div>`;
}

/** What is said about limits that are too high, by field. @param ownTokenId the token of the session. */
export function limitProblems(excesses: readonly Excess[], ownTokenId: string): Record<string, string> {
  const problems = excesses.map(({ field, boundMils, tokenId }): [string, string] => {
    const whose = tokenId === ownTokenId ? "that you are signed in with" : "that made this one";
    return [field, `Expected at most ${dollars(boundMils).slice(1)}, the limit of the token ${whose}.`];
  });
  return Object.fromEntries(problems);
}

/** Reads the fields of {@link limitFields}. A form without one of them changes neither. */
export function readLimitFields(form: URLSearchParams): {
  change: { dayMils: number | null; monthMils: number | null };
  problems: Record<string, string>;
} {
  const problems: Record<string, string> = {};
  const read = (name: string): number | null => {
    const text = form.get(name)?.trim();
    if (text === "") return null;
    const mils = parseDollars(text ?? "");
    if (mils === undefined) problems[name] = problem;
    return mils ?? null;
  };
  return { change: { dayMils: read("day"), monthMils: read("month") }, problems };
}
