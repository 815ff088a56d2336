import { type SentForm, textField } from "../../pages/form-fields.ts";
import { dollars } from "../../pages/format.ts";
import { html, type Html } from "../../pages/html.ts";
import { parseDollars } from "../../pages/parse-dollars.ts";

const problem = "Expected dollars with up to three decimals, such as 25 or 0.505, or nothing for no limit.";

/** The limits of an organization or a token in mils; null for none. */
export interface Limits {
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
