import type { ResultType } from "../../../shared/results.ts";
import type { Element, Page } from "../../../worker/providers/provider.ts";

/** The fields that extraction is measured by. */
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

/** One expected element, derived from the raw JSON of an answer and not from its adapter. */
export interface ExpectedElement {
  /** The expected type; undefined if the element is matched by its position on the page. */
  type?: ResultType;
  /** The raw value of each field that the answer has. */
  values: ReadonlyMap<Field, unknown>;
}
export interface ExpectedPage {
  elements: ExpectedElement[];
  /** Whether the answer has the total number of results. */
  hasTotal: boolean;
}

export type Raw = Readonly<Record<string, unknown>>;

/**
 * The number of expected and of extracted elements; and by field, how many were expected and how many were extracted. Titles,
 * URLs and breadcrumbs count as extracted only with exactly the expected text.
 */
export interface Coverage {
  expected: number;
  extracted: number;
  fields: Record<Field, { expected: number; extracted: number }>;
}

/** The element expected from these raw values. Fields without a text are left out. An element with a URL also has a domain. */
export function expectElement(type: ResultType | undefined, parts: Partial<Record<Field, unknown>>): ExpectedElement {
  const raw = { ...parts, domain: parts.url };
  const values = new Map(fields.filter((field) => hasText(raw[field])).map((field) => [field, raw[field]]));
  return type === undefined ? { values } : { type, values };
}

/** Whether it is, or contains, a number or a text that is not blank. */
export function hasText(value: unknown): boolean {
  if (typeof value === "object" && value !== null) return Object.values(value).some(hasText);
  return typeof value === "number" || (typeof value === "string" && value.trim() !== "");
}

export function isRaw(value: unknown): value is Raw {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The object itself; an empty object for any other value. */
export function toRaw(value: unknown): Raw {
  return isRaw(value) ? value : {};
}

/** The objects of a list; none for any other value. */
export function toRows(value: unknown): Raw[] {
  return Array.isArray(value) ? value.filter(isRaw) : [];
}

/** Compares a page with the expected elements. Elements of one type are matched in order. */
export function measureCoverage(expected: ExpectedPage, page: Page): Coverage {
  const coverage = sumCoverage([...measureCoverageByType(expected, page).values()]);
  const hasTotal = Number(expected.hasTotal);
  coverage.fields.total = { expected: hasTotal, extracted: hasTotal * Number(page.totalResultsCount > 0) };
  return coverage;
}

/** The same for each type of element on its own, without the total. An element that the page lacks may have no known type. */
export function measureCoverageByType({ elements }: ExpectedPage, page: Page): Map<ResultType | "unknown", Coverage> {
  const left = [...page.elements];
  const coverages = new Map<ResultType | "unknown", Coverage>();
  const coverageOf = (type: ResultType | "unknown") => {
    const coverage = coverages.get(type) ?? noCoverage();
    coverages.set(type, coverage);
    return coverage;
  };
  for (const { type } of page.elements) coverageOf(type).extracted += 1;
  for (const element of elements) {
    const at = left.findIndex(({ type }) => element.type === undefined || element.type === type);
    const [found] = at < 0 ? [] : left.splice(at, 1);
    const coverage = coverageOf(element.type ?? found?.type ?? "unknown");
    coverage.expected += 1;
    for (const [field, value] of element.values) {
      coverage.fields[field].expected += 1;
      coverage.fields[field].extracted += Number(found !== undefined && isExtracted(found, field, value));
    }
  }
  return coverages;
}

export function sumCoverage(coverages: readonly Coverage[]): Coverage {
  const sum = noCoverage();
  for (const { expected, extracted, fields: counts } of coverages) {
    sum.expected += expected;
    sum.extracted += extracted;
    for (const field of fields) {
      sum.fields[field].expected += counts[field].expected;
      sum.fields[field].extracted += counts[field].extracted;
    }
  }
  return sum;
}

/** One line for each field with expected values that were not extracted. */
export function listMissing({ expected, extracted, fields: counts }: Coverage): string[] {
  const elements = expected === extracted ? [] : [`elements: ${extracted} of ${expected}`];
  const incomplete = fields.filter((field) => counts[field].extracted < counts[field].expected);
  return [
    ...elements,
    ...incomplete.map((field) => `${field}: ${counts[field].extracted} of ${counts[field].expected}`),
  ];
}

/** Sanitizing changes a text with markup, entities, NBSP or direction marks. */
const changedBySanitizing = /[<&\u00a0\u200e\u200f]/;

function isExtracted(element: Element, field: Field, value: unknown): boolean {
  if (field === "total") return false;
  if (field === "richSnippet.top") return element.richSnippet.top.length > 0;
  if (field === "richSnippet.bottom") return element.richSnippet.bottom.length > 0;
  const isVerbatim = field === "title" || field === "url" || field === "breadcrumb";
  if (isVerbatim && typeof value === "string" && !changedBySanitizing.test(value))
    return element[field] === value.trim();
  return element[field].length > 0;
}

function noCoverage(): Coverage {
  const none = () => ({ expected: 0, extracted: 0 });
  return {
    expected: 0,
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
