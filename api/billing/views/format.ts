/** How amounts, counts and times are written on the page. Integers all the way: a mil is never a fraction. */

const grouped = new Intl.NumberFormat("en-US");
const dayAndMonth = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });

export const count = (value: number) => grouped.format(value);

/** `1,234 mils`, `1 mil`. */
export const mils = (value: number) => `${count(value)} ${value === 1 ? "mil" : "mils"}`;

/** `$1.234`: a mil is the third decimal. */
export function dollars(value: number): string {
  return `$${count(Math.floor(value / 1_000))}.${String(value % 1_000).padStart(3, "0")}`;
}

/** `12 searches`, `1 search`. */
export const searches = (value: number) => `${count(value)} ${value === 1 ? "search" : "searches"}`;

/** `12 Nov` of a day as in `2026-11-12`, or of a moment, in UTC. */
export const dayOf = (at: string | Date) => dayAndMonth.format(typeof at === "string" ? new Date(`${at}T00:00Z`) : at);

/** `07:43:12`, in UTC. */
export const timeOf = (at: Date) => at.toISOString().slice(11, 19);
