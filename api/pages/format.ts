/** How the page writes amounts, counts and times. All amounts are whole mils, so nothing is rounded. */

import { html, type Html } from "./html.ts";

const grouped = new Intl.NumberFormat("en-US");
const dayAndMonth = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });

export const count = (value: number) => grouped.format(value);

/** `1,234 mils`, `1 mil`. */
export const mils = (value: number) => `${count(value)} ${value === 1 ? "mil" : "mils"}`;

/** `$1.234` for 1,234 mils: a mil is the third decimal of a dollar. */
export function dollars(valueMils: number): string {
  return `$${count(Math.floor(valueMils / 1_000))}.${String(valueMils % 1_000).padStart(3, "0")}`;
}

/** `$1.234` for 1,234 mils, `$1.23` for 1,230, `$1.00` for 1,000: as few decimals as say it all, and never fewer than two. */
export const dollarText = (valueMils: number) =>
  `${valueMils < 0 ? "−" : ""}${dollars(Math.abs(valueMils)).replace(/0$/, "")}`;

/** An amount in dollars, with its mils for a pointer that rests on it. */
export const amount = (valueMils: number): Html =>
  html`<data value="${valueMils}" title="${mils(valueMils)}">${dollarText(valueMils)}</data>`;

/** `12 searches`, `1 search`. */
export const searches = (value: number) => `${count(value)} ${value === 1 ? "search" : "searches"}`;

/** `12 Nov` in UTC, of a day such as `2026-11-12` or of an instant. */
export const dayOf = (at: string | Date) => dayAndMonth.format(typeof at === "string" ? new Date(`${at}T00:00Z`) : at);

/** `07:43:12` in UTC. */
export const timeOf = (at: Date) => at.toISOString().slice(11, 19);
