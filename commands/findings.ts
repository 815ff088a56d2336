/** What `doctor` reports about a part of the installation, and how a terminal shows it. */

/** What the doctor found out about one part. Searches are served despite a `warning`, and not with an `error`. */
export interface Finding {
  part: "settings" | "postgres" | "ledger" | "redis" | "clocks" | "workers" | "providers" | "plans";
  state: "ok" | "warning" | "error";
  found: string;
  /** How to fix it; null if there is nothing to do. */
  advice: string | null;
  /** The page of the documentation about it; null if there is nothing to do. */
  docs: string | null;
}

/** Where the documentation has each part, for findings that name no other page. */
const pageOf: Record<Finding["part"], string> = {
  settings: "docs/operating/configuration.md",
  postgres: "docs/operating/datastores.md#postgres",
  ledger: "docs/operating/runbook.md#ledgergap",
  redis: "docs/operating/datastores.md#redis",
  clocks: "docs/operating/deploying.md#scaling",
  workers: "docs/operating/runbook.md#noworkerreports",
  providers: "docs/operating/providers.md#checking-providers",
  plans: "docs/operating/providers.md#prices-and-margin-by-depth",
};

export const ok = (part: Finding["part"], found: string): Finding => ({
  part,
  state: "ok",
  found,
  advice: null,
  docs: null,
});
const findingOf =
  (state: Finding["state"]) =>
  (part: Finding["part"], found: string, advice: string, docs = pageOf[part]): Finding => ({
    part,
    state,
    found,
    advice,
    docs,
  });
export const warning = findingOf("warning");
export const failure = findingOf("error");

/** A line for each finding, and below it the advice and its page. */
export function formatFindings(findings: readonly Finding[]): string {
  const line = ({ part, state, found, advice, docs }: Finding) =>
    `${state.padEnd(7)}  ${part.padEnd(9)}  ${found}\n${advice === null ? "" : `                    → ${advice}\n                      ${docs}\n`}`;
  return findings.map(line).join("");
}
