import type { LimitChange, OwnLimits } from "../../organizations/limits.ts";
import type { Excess } from "../../tokens/token-family.ts";
import { organizationField } from "../frame/account-frame.ts";
import { amountRule, dollarsField, dollarsText, parseDollars, type SentForm } from "../../pages/form.ts";
import { amount, dollars } from "../../pages/format.ts";
import { html, type Html } from "../../pages/html.ts";

/** The form for the limits of an organization or, with `tokenId`, of one of its tokens. */
export function limitsSection(limits: OwnLimits, sent: SentForm, tokenId?: string): Html {
  const { organizationId, spentTodayMils, spentThisMonthMils } = limits;
  // Null while nothing is counted, because there never was a limit.
  const isCounted = spentTodayMils !== null && spentThisMonthMils !== null;
  const was = (name: string, mils: number | null) =>
    html`<input type="hidden" name="was_${name}" value="${sent.values.get(`was_${name}`) ?? dollarsText(mils)}">`;
  return html`<section class="setting" aria-labelledby="limits-title">
<div class="intro"><h2 id="limits-title">Spending limits</h2>
<p class="aside">${tokenId === undefined ? html`What all tokens of the organization may spend together. Each of the <a href="/billing/tokens">tokens</a> can also have its own limits.` : "What this token may spend."} A search beyond a limit gets 402 and costs nothing. Every API applies a change within two seconds.</p></div>
<form class="form" method="post" action="/billing/${tokenId === undefined ? "settings" : "tokens"}/limits">
${organizationField(organizationId)}${tokenId !== undefined && html`<input type="hidden" name="token" value="${tokenId}">`}
${isCounted && html`<p>Spent today ${amount(spentTodayMils)}, this month ${amount(spentThisMonthMils)}.</p>`}
${was("day", limits.dayLimitMils)}${was("month", limits.monthLimitMils)}${limitFields(sent, limits)}
<button>Save limits</button>
</form></section>`;
}

const problem = `Enter US dollars, such as 25 or 0.505, or leave the field empty. ${amountRule}`;

type Limits = Pick<OwnLimits, "dayLimitMils" | "monthLimitMils">;

/** The fields of both limits. */
export function limitFields(sent: SentForm, { dayLimitMils, monthLimitMils }: Limits): Html {
  const hint = "In US dollars. Leave empty for no limit.";
  return html`<div class="fields">${dollarsField(sent, { name: "day", label: "Daily limit (UTC)", hint, mils: dayLimitMils })}
${dollarsField(sent, { name: "month", label: "Monthly limit (UTC)", hint, mils: monthLimitMils })}</div>`;
}

/** The message after a change. It repeats the limits as they were understood. */
export function limitsSaved({ dayLimitMils, monthLimitMils }: Limits): string {
  return `Limits saved. Daily: ${dollarsOrNone(dayLimitMils)}. Monthly: ${dollarsOrNone(monthLimitMils)}.`;
}

export const dollarsOrNone = (mils: number | null) => (mils === null ? "none" : `$${dollarsText(mils)}`);

/** Messages for limits that are too high, by field. @param ownTokenId the token of the session. */
export function limitProblems(excesses: readonly Excess[], ownTokenId: string): Record<string, string> {
  const problems = excesses.map(({ field, boundMils, tokenId }): [string, string] => {
    const whose = tokenId === ownTokenId ? "your current token" : "the token that created this one";
    return [field, `Enter at most ${dollars(boundMils)}, the limit of ${whose}.`];
  });
  return Object.fromEntries(problems);
}

export const dayLimitRequired = "A token for the address of a door always has a daily limit.";

/** Reads the fields of {@link limitFields}. A form without one of them changes no limit. */
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

/** Reads the form of {@link limitsSection}. A limit that the payer left as it was shown stays, also if another page changed it since. */
export function readLimitChange(form: URLSearchParams): { change: LimitChange; problems: Record<string, string> } {
  const { change, problems } = readLimitFields(form);
  const edited = (name: string, mils: number | null) => (form.get(name) === form.get(`was_${name}`) ? undefined : mils);
  return { change: { dayMils: edited("day", change.dayMils), monthMils: edited("month", change.monthMils) }, problems };
}
