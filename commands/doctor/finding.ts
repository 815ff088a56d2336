/**
 * What the doctor found out about one part: `ok`; `warning`, which does not keep searches from being served; or `error`,
 * which does.
 */
export interface Finding {
  part: "settings" | "postgres" | "redis" | "clocks" | "workers" | "providers" | "plans";
  state: "ok" | "warning" | "error";
  /** What it found, as a short text. */
  found: string;
  /** What to do; null where nothing is to be done. */
  advice: string | null;
}

type Part = Finding["part"];

export const ok = (part: Part, found: string): Finding => ({ part, state: "ok", found, advice: null });
export const warning = (part: Part, found: string, advice: string): Finding => ({
  part,
  state: "warning",
  found,
  advice,
});
export const failure = (part: Part, found: string, advice: string): Finding => ({
  part,
  state: "error",
  found,
  advice,
});

/** A text for people: a line for each finding, and below it what to do. */
export function formatFindings(findings: readonly Finding[]): string {
  const line = ({ part, state, found, advice }: Finding) =>
    `${state.padEnd(7)}  ${part.padEnd(9)}  ${found}\n${advice === null ? "" : `                    → ${advice}\n`}`;
  return findings.map(line).join("");
}
