import { parse } from "yaml";
import { z } from "zod";
import { readSource } from "./sources.ts";

/** What the checkout declares, for tests that compare it with what is documented, shown or deployed. */

/** The name of each setting. */
export const settingNames = () =>
  [...readSource("shared/config.ts").matchAll(/^ {2}([A-Z][A-Z0-9_]+):/gm)].map(([, name = ""]) => name);

const rule = z.object({ alert: z.string(), labels: z.object({ severity: z.string() }) });
const rulesFile = z.object({ groups: z.array(z.object({ rules: z.array(rule) })) });

/** The severity of each alert. */
export function alertSeverities(): Map<string, string> {
  const { groups } = rulesFile.parse(parse(readSource("deploy/prometheus/alerts.yml")));
  return new Map(groups.flatMap(({ rules }) => rules.map(({ alert, labels }) => [alert, labels.severity] as const)));
}
