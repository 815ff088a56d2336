import type { ResultType } from "../../../shared/results.ts";
import type { Element, Page } from "../../../shared/providers/provider.ts";

/** What of a page can be filled or not. */
export const fields = [
  "title",
  "url",
  "domain",
  "breadcrumb",
  "description",
  "richSnippet.top",
  "richSnippet.bottom",
  "siteLinks",
  "total",
] as const;
export type Field = (typeof fields)[number];

/** What an answer holds of one element, by its raw JSON alone and not by its adapter. */
export interface ExpectedElement {
  /** What it has to become; left out where its place on the page tells which result it is. */
  type?: ResultType;
  /** What stands there for each field that has something. */
  parts: ReadonlyMap<Field, unknown>;
}
export interface ExpectedPage {
  elements: ExpectedElement[];
  /** Whether it tells how many results there are in all. */
  hasTotal: boolean;
}

export type Raw = Readonly<Record<string, unknown>>;

/**
 * How many elements an answer holds and how many results came out; by field, how many held something and came out filled:
 * titles, addresses and breadcrumbs with the very same text.
 */
export interface Coverage {
  held: number;
  extracted: number;
  fields: Record<Field, { held: number; filled: number }>;
}

/** The parts of an element for which its answer has something. What has an address has a domain, too. */
export function expectElement(type: ResultType | undefined, parts: Partial<Record<Field, unknown>>): ExpectedElement {
  const told = { ...parts, domain: parts.url };
  const found = new Map(fields.filter((field) => hasText(told[field])).map((field) => [field, told[field]]));
  return type === undefined ? { parts: found } : { type, parts: found };
}

/** Whether anybody could read it: a text, a number, or a list or object with one in it. */
export function hasText(value: unknown): boolean {
  if (typeof value === "object" && value !== null) return Object.values(value).some(hasText);
  return typeof value === "number" || (typeof value === "string" && value.trim() !== "");
}

export function isRaw(value: unknown): value is Raw {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The object that stands there, or one without parts. */
export function toRaw(value: unknown): Raw {
  return isRaw(value) ? value : {};
}

/** The objects of a list; none where it is no list. */
export function toRows(value: unknown): Raw[] {
  return Array.isArray(value) ? value.filter(isRaw) : [];
}

/** Holds what came out against what the answer held. Of several of one type the first belongs to the first. */
export function measureCoverage({ elements, hasTotal }: ExpectedPage, page: Page): Coverage {
  const left = [...page.elements];
  const coverage = noCoverage();
  coverage.held = elements.length;
  coverage.extracted = page.elements.length;
  coverage.fields.total = { held: Number(hasTotal), filled: Number(hasTotal && page.totalResultsCount > 0) };
  for (const held of elements) {
    const at = left.findIndex(({ type }) => held.type === undefined || held.type === type);
    const [found] = at < 0 ? [] : left.splice(at, 1);
    for (const [field, value] of held.parts) {
      coverage.fields[field].held += 1;
      coverage.fields[field].filled += Number(found !== undefined && isFilled(found, field, value));
    }
  }
  return coverage;
}

export function sumCoverage(coverages: readonly Coverage[]): Coverage {
  const sum = noCoverage();
  for (const { held, extracted, fields: counts } of coverages) {
    sum.held += held;
    sum.extracted += extracted;
    for (const field of fields) {
      sum.fields[field].held += counts[field].held;
      sum.fields[field].filled += counts[field].filled;
    }
  }
  return sum;
}

/** What an answer held and no result has. */
export function listMissing({ held, extracted, fields: counts }: Coverage): string[] {
  const elements = held === extracted ? [] : [`elements: ${extracted} of ${held}`];
  const unfilled = fields.filter((field) => counts[field].filled < counts[field].held);
  return [...elements, ...unfilled.map((field) => `${field}: ${counts[field].filled} of ${counts[field].held}`)];
}

/** Markup, entities and marks of direction do not come out as they stand there. */
const changesOnItsWay = /[<&\u00a0\u200e\u200f]/;

function isFilled(element: Element, field: Field, held: unknown): boolean {
  if (field === "total") return false;
  if (field === "richSnippet.top") return element.richSnippet.top.length > 0;
  if (field === "richSnippet.bottom") return element.richSnippet.bottom.length > 0;
  const isVerbatim = field === "title" || field === "url" || field === "breadcrumb";
  if (isVerbatim && typeof held === "string" && !changesOnItsWay.test(held)) return element[field] === held.trim();
  return element[field].length > 0;
}

function noCoverage(): Coverage {
  const none = () => ({ held: 0, filled: 0 });
  return {
    held: 0,
    extracted: 0,
    fields: {
      title: none(),
      url: none(),
      domain: none(),
      breadcrumb: none(),
      description: none(),
      "richSnippet.top": none(),
      "richSnippet.bottom": none(),
      siteLinks: none(),
      total: none(),
    },
  };
}
