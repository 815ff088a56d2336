import { type HttpProviderName, madeUpBodies } from "../fixtures/made-up-answers.ts";
import { readAnswer } from "../fixtures/provider-answers.ts";
import { coveredIn, omissions } from "./omissions.ts";
import { traceFields, type TracedField } from "./traced-fields.ts";

/** The fields of a provider's made-up answer that reach no page although no omission covers them. */
export function undocumentedLosses(provider: HttpProviderName): string[] {
  return traced(provider).flatMap(({ path, targets }) => (targets.size === 0 ? [path] : []));
}

/** Whether the provider tells the rank of elements of its made-up answer. */
export function tellsRanks(provider: HttpProviderName): boolean {
  const page = readAnswer({ provider, body: JSON.stringify(madeUpBodies[provider]) });
  return "elements" in page && page.elements.some(({ providerRank }) => providerRank !== undefined);
}

/** Two tables in Markdown: what an adapter makes of its provider's answers, and what it leaves out. */
export function mappingTables(provider: HttpProviderName): string {
  const kept = traced(provider).filter(({ targets }) => targets.size > 0);
  const blocks = [...Map.groupBy(kept, ({ block }) => block)].toSorted(byFirst);
  return [
    "| part of the answer | becomes | from its fields |",
    "| --- | --- | --- |",
    ...blocks.flatMap(([block, fields]) => blockRows(block, fields)),
    "",
    "| left out | reason |",
    "| --- | --- |",
    ...[...omissions[provider]].map(([reason, fields]) => `| ${fields.map(code).join(", ")} | ${reason} |`),
  ].join("\n");
}

const tracedBefore = new Map<HttpProviderName, TracedField[]>();

/** The trace of a provider's made-up answer. It reads the answer once for each of its fields, so it is kept. */
function traced(provider: HttpProviderName): TracedField[] {
  const fields = tracedBefore.get(provider) ?? traceFields(provider, madeUpBodies[provider], coveredIn(provider));
  tracedBefore.set(provider, fields);
  return fields;
}

/** The fields of an element, in the order of an answer. */
const order = ["title", "url", "breadcrumb", "description", "richSnippet.top", "richSnippet.bottom"];
const placeOf = (name: string) => (order.includes(name) ? order.indexOf(name) : order.length);

/** One row for each type of element that a block becomes. */
function blockRows(block: string, fields: readonly TracedField[]): string[] {
  const sources = fields.flatMap(({ field, targets }) =>
    [...targets].map((target) => {
      const [type = "", name = ""] = target.split(" ");
      return { type, name, field };
    }),
  );
  return [...Map.groupBy(sources, ({ type }) => type)].toSorted(byFirst).map(([type, ofType]) => {
    const names = [...Map.groupBy(ofType, ({ name }) => name)]
      .toSorted(([one], [other]) => placeOf(one) - placeOf(other))
      .map(
        ([name, from]) =>
          `${code(name)}: ${from.map(({ field }) => (field === "" ? "its text" : code(field))).join(", ")}`,
      );
    return `| ${code(block)} | ${type === "" ? "no element" : code(type)} | ${names.join("; ")} |`;
  });
}

const code = (text: string) => `\`${text}\``;

function byFirst([one]: readonly [string, unknown], [other]: readonly [string, unknown]): number {
  return one < other ? -1 : 1;
}
