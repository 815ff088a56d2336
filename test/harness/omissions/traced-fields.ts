import type { Page } from "../../../worker/providers/provider.ts";
import { readAnswer } from "../fixtures/provider-answers.ts";
import type { HttpProviderName } from "../fixtures/made-up-answers.ts";
import { isRaw, leavesOf } from "./lost-values.ts";

/** One field of a provider's answer, and where its adapter puts it. */
export interface TracedField {
  /** From the top of the answer, without marks for lists: `related_questions.references.link`. */
  path: string;
  /** The part of the answer that becomes elements of its own: `related_questions`, or the type of an item. */
  block: string;
  /** The names of the field within its block: `references.link`. */
  field: string;
  /** `people_also_ask siteLinks.url`. Empty if nothing of it reaches the page. */
  targets: ReadonlySet<string>;
}

const textMark = "zyx9";
const numberMark = 7_654_321;
const dayMark = "2031-03-04";
const marks = new RegExp(`${textMark}|7[,.]?654[,.]?321|${dayMark}`, "i");
const timestamp = /^\d{4}-\d\d-\d\d(?=[ T])/;

/**
 * Traces the texts, numbers and links of an answer: each is marked, alone, and the page is searched for the mark. Those that
 * are left out on purpose are not traced: a mark in them may change the kind of an element.
 */
export function traceFields(
  provider: HttpProviderName,
  answer: unknown,
  isOmitted: (path: string) => boolean,
): TracedField[] {
  const traced = new Map<string, TracedField & { targets: Set<string> }>();
  for (const place of placesWithin(answer)) {
    const path = place.filter((name) => typeof name === "string").join(".");
    if (isOmitted(path)) continue;
    const { block, field } = nameOf(answer, place);
    const key = `${block} ${field}`;
    const found = traced.get(key) ?? { path, block, field, targets: new Set<string>() };
    traced.set(key, found);
    const page = readAnswer({ provider, body: JSON.stringify(withMark(answer, place)) });
    if ("elements" in page) for (const target of markedFields(page)) found.targets.add(target);
  }
  return [...traced.values()];
}

type Place = readonly (string | number)[];

/** The places of all texts and numbers. Of the rows of a list that have the same fields, the first stands for all. */
function* placesWithin(value: unknown, place: Place = []): Generator<Place> {
  if ((typeof value === "string" && value !== "") || typeof value === "number") yield place;
  else if (Array.isArray(value)) {
    const shapes = new Set<string>();
    for (const [at, member] of value.entries()) {
      const shape = JSON.stringify(shapeOf(member));
      if (!shapes.has(shape)) yield* placesWithin(member, [...place, at]);
      shapes.add(shape);
    }
  } else if (isRaw(value))
    for (const [name, part] of Object.entries(value)) yield* placesWithin(part, [...place, name]);
}

/** Names of fields and types of values. The fields that tell a row's kind keep their values. */
function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shapeOf);
  if (!isRaw(value)) return value === null ? null : typeof value;
  const parts = Object.entries(value);
  return parts.map(([name, part]) => [name, /^(type|block_position)$/.test(name) ? part : shapeOf(part)]);
}

/** The items of DataForSEO are named by their type, everything else by its first field. */
function nameOf(answer: unknown, place: Place): { block: string; field: string } {
  const isItem = isInItem(place);
  const names = place.slice(isItem ? itemDepth : 1).filter((name) => typeof name === "string");
  const item = isItem ? valueAt(answer, place.slice(0, itemDepth)) : undefined;
  return { block: String(isRaw(item) ? item["type"] : place[0]), field: names.join(".") };
}

/** `tasks[0].result[0].items[0]`. */
const itemDepth = 6;

function isInItem([tasks, , result, , items, ...rest]: Place): boolean {
  return tasks === "tasks" && result === "result" && items === "items" && rest.length > 1;
}

function valueAt(value: unknown, [first, ...rest]: Place): unknown {
  if (first === undefined) return value;
  if (Array.isArray(value)) return valueAt(value[Number(first)], rest);
  return isRaw(value) ? valueAt(value[first], rest) : undefined;
}

/** Of DataForSEO's items only the one with the mark is kept: reading all of them for each mark would take seconds. */
function withMark(answer: unknown, place: Place): unknown {
  if (!isInItem(place)) return changeAt(answer, place, marked);
  const item = changeAt(valueAt(answer, place.slice(0, itemDepth)), place.slice(itemDepth), marked);
  return changeAt(answer, place.slice(0, itemDepth - 1), () => [item]);
}

function changeAt(value: unknown, [first, ...rest]: Place, change: (value: unknown) => unknown): unknown {
  if (first === undefined) return change(value);
  if (Array.isArray(value)) {
    return value.map((member: unknown, at) => (at === first ? changeAt(member, rest, change) : member));
  }
  const object = isRaw(value) ? value : {};
  return { ...object, [first]: changeAt(object[first], rest, change) };
}

function marked(value: unknown): unknown {
  if (typeof value === "number") return numberMark;
  const text = String(value);
  return timestamp.test(text)
    ? text.replace(timestamp, dayMark)
    : `${text}${text.startsWith("http") ? "" : " "}${textMark}`;
}

function markedFields({ elements, totalResultsCount, searchedKeyword }: Page): string[] {
  const ofPage = Object.entries({ totalResultsCount, searchedKeyword }).filter(([, value]) =>
    marks.test(String(value)),
  );
  return [
    ...ofPage.map(([name]) => ` ${name}`),
    ...elements.flatMap(({ type, ...fields }) =>
      [...leavesOf(fields)]
        .filter(({ path, value }) => path !== "domain" && marks.test(value))
        .map(({ path }) => `${type} ${path.replaceAll("[]", "")}`),
    ),
  ];
}
