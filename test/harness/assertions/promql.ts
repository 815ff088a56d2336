import { parser } from "@prometheus-io/lezer-promql";
import type { Registry } from "prom-client";
import { z } from "zod";

/** Names of series with their labels. A histogram has three series. */
export type Series = Map<string, Set<string>>;

const metric = z.object({ name: z.string(), type: z.string(), labelNames: z.array(z.string()) });
// Prometheus adds these labels to every series that it scrapes.
const ofTheTarget = ["job", "instance"];

/** All series that a process can expose, with or without a value, and `others` that Prometheus adds. */
export function seriesOf(registry: Registry, others: Record<string, readonly string[]>): Series {
  const own = registry.getMetricsAsArray().flatMap((declared): [string, string[]][] => {
    const { name, type, labelNames } = metric.parse(declared);
    if (type !== "histogram") return [[name, labelNames]];
    return [
      [`${name}_bucket`, [...labelNames, "le"]],
      [`${name}_sum`, labelNames],
      [`${name}_count`, labelNames],
    ];
  });
  const all: (readonly [string, readonly string[]])[] = [...own, ...Object.entries(others)];
  return new Map(all.map(([name, labels]) => [name, new Set([...labels, ...ofTheTarget])]));
}

/**
 * Faults of a PromQL expression: a syntax error, a metric that no process exposes, a label that its metric does not have,
 * and one of `shown` (labels that a legend or a sentence repeats) that the result does not carry.
 */
export function faultsOf(expression: string, known: Series, shown: readonly string[] = []): string[] {
  const text = expression.replaceAll("$__rate_interval", "5m");
  const root = parser.parse(text).topNode;
  const textOf = ({ from, to }: Node) => text.slice(from, to);
  const metricOf = (selector: Node) => within(selector, "Identifier").map(textOf)[0] ?? "";
  const namesIn = (node: Node) => within(node, "LabelName").map(textOf);
  const unknownIn = (node: Node, labels: readonly string[]) =>
    within(node, "VectorSelector")
      .map(metricOf)
      .flatMap((name) =>
        labels.filter((label) => known.has(name) && !known.get(name)?.has(label)).map((label) => ({ name, label })),
      );

  const selectors = within(root, "VectorSelector");
  const groupings = within(root, "GroupingLabels");
  const kept =
    groupings.length > 0
      ? groupings.flatMap(namesIn)
      : selectors.flatMap((one) => [...(known.get(metricOf(one)) ?? [])]);
  return [
    ...within(root, "⚠").map(({ from }) => `cannot be read at ${from}: ${expression}`),
    ...(selectors.length > 0 ? [] : [`selects no metric: ${expression}`]),
    ...selectors
      .map(metricOf)
      .filter((name) => !known.has(name))
      .map((name) => `no metric ${name}`),
    ...[
      ...selectors.flatMap((selector) => unknownIn(selector, namesIn(selector))),
      ...groupings.flatMap((grouping) => unknownIn(groupedBy(grouping), namesIn(grouping))),
    ].map(({ name, label }) => `${name} has no label ${label}`),
    ...shown.filter((label) => !kept.includes(label)).map((label) => `no ${label} in the result of ${expression}`),
  ];
}

type Node = ReturnType<typeof parser.parse>["topNode"];

function within(node: Node, name: string): Node[] {
  const found = node.name === name ? [node] : [];
  for (let child = node.firstChild; child; child = child.nextSibling) found.push(...within(child, name));
  return found;
}

/** The aggregation or operation whose labels these are. */
function groupedBy(grouping: Node): Node {
  let node = grouping;
  while (node.parent && node.name !== "AggregateExpr" && node.name !== "BinaryExpr") node = node.parent;
  return node;
}
