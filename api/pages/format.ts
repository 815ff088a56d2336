/** How pages write amounts, counts and times. All amounts are whole mils, so nothing is rounded. */

import { html, type Html } from "./html.ts";

// No sign for -0, which is zero with its sign changed.
const grouped = new Intl.NumberFormat("en-US", { signDisplay: "negative" });
const monthAndYear = new Intl.DateTimeFormat("en-GB", { month: "long", year: "numeric", timeZone: "UTC" });
const dayAndMonth = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });

const fullDate = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });

export const count = (value: number) => grouped.format(value);

/** `1,234 results`, `1 result`. */
export const plural = (value: number, one: string, many = `${one}s`) => `${count(value)} ${value === 1 ? one : many}`;

const mils = (value: number) => plural(value, "mil");

/** `$12.500`, `$0.005`: always with three decimals, the last of which is a mil, so that columns line up and nothing looks cut off. */
export function dollars(valueMils: number): string {
  const size = Math.abs(valueMils);
  const decimals = String(size % 1_000).padStart(3, "0");
  return `${valueMils < 0 ? "−" : ""}$${count(Math.floor(size / 1_000))}.${decimals}`;
}

/** An amount in dollars, with its mils as the tooltip. */
export const amount = (valueMils: number): Html =>
  html`<data value="${valueMils}" title="${mils(valueMils)}">${dollars(valueMils)}</data>`;

export const searches = (value: number) => plural(value, "search", "searches");

/** `12 Nov` in UTC, for a day such as `2026-11-12` or an instant. */
export const dayOf = (at: string | Date) => dayAndMonth.format(typeof at === "string" ? new Date(`${at}T00:00Z`) : at);

/** `12 Nov 2026` in UTC. */
export const dateOf = (at: Date) => fullDate.format(at);

/** `March 2026` for a month such as `2026-03`. */
export const monthOf = (month: string) => monthAndYear.format(new Date(`${month}-01T00:00Z`));

/** `07:43:12` in UTC. */
export const timeOf = (at: Date) => at.toISOString().slice(11, 19);

/** `12 Nov 07:43:12` in UTC. */
export const shortMomentOf = (at: Date) => `${dayOf(at)} ${timeOf(at)}`;

/** `12 Nov 2026, 07:43:12 UTC`. */
export const momentOf = (at: Date) => `${dateOf(at)}, ${timeOf(at)} UTC`;

/** A time in a short form, by default day and time, with the full time as the tooltip. */
export const timeElement = (at: Date, shown: Html | string = html`${dayOf(at)} <span>${timeOf(at)}</span>`): Html =>
  html`<time datetime="${at.toISOString()}" title="${momentOf(at)}">${shown}</time>`;
