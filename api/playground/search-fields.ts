import type { Plan } from "../../shared/credits/plans.ts";
import { depthMax, organicPerPage } from "../../shared/query/depth.ts";
import { resultTypes } from "../../shared/results.ts";
import { html, type Html } from "../pages/html.ts";

/** The fields of the playground form as typed. Missing ones are empty. */
export interface SearchFields {
  keyword: string;
  location: string;
  language: string;
  device: string;
  targetDomain: string;
  depth: string;
  format: string;
  types: readonly string[];
}

export function readSearchFields(form: URLSearchParams): SearchFields {
  const text = (name: string) => form.get(name) ?? "";
  return {
    keyword: text("keyword"),
    location: text("location"),
    language: text("language"),
    device: text("device"),
    targetDomain: text("targetDomain"),
    depth: text("depth"),
    format: text("format"),
    types: form.getAll("types"),
  };
}

/** The body of the equivalent POST /v1/serp/search. Empty fields are left out. */
export function requestBodyOf(fields: SearchFields): Record<string, unknown> {
  const { keyword, depth, types, ...others } = fields;
  const given = Object.entries(others).filter(([, value]) => value !== "");
  return {
    keyword,
    ...Object.fromEntries(given),
    ...(depth !== "" && { depth: Number(depth) }),
    ...(types.length > 0 && { types }),
  };
}

const offeredDepths = [20, 30, 50, 100];

const option = (value: string, chosen: string, label: string) =>
  html`<option value="${value}"${value === chosen && html` selected`}>${label}</option>`;

export function searchFields(fields: SearchFields, { maxDepth = depthMax }: Pick<Plan, "maxDepth">): Html {
  const { keyword, location, language, device, targetDomain, depth, format, types } = fields;
  // Includes a depth from the address, so that the form shows what it sends.
  const depths = new Set(["", ...offeredDepths.filter((offered) => offered <= maxDepth).map(String), depth]);
  const kind = (type: string) =>
    html`<label><input type="checkbox" name="types" value="${type}"${types.includes(type) && html` checked`}> ${type}</label>`;
  return html`<div class="keyword"><label for="keyword">Keyword</label><input id="keyword" name="keyword" value="${keyword}" required autocomplete="off"><button>Search</button></div>
<div class="fields">
<label>Country or place <input name="location" value="${location}" placeholder="United States"></label>
<label>Language <input name="language" value="${language}" placeholder="English"></label>
<label>Domain <input name="targetDomain" value="${targetDomain}" placeholder="any"></label>
<label>Device <select name="device">${option("", device, "Desktop")}${option("mobile", device, "Mobile")}</select></label>
<label>Depth <select name="depth">${[...depths].map((value) => option(value, depth, value || String(organicPerPage)))}</select></label>
<label>Format <select name="format">${option("", format, "Full")}${option("compact", format, "Compact")}</select></label>
</div>
<details${types.length > 0 && html` open`}><summary>Only some element types</summary><div class="kinds">${resultTypes.map(kind)}</div></details>`;
}

/** A query as requests and the search log have it. */
interface FormQuery {
  keyword: string;
  location?: string;
  language?: string;
  device?: string;
  depth?: number;
  targetDomain?: string | undefined;
  types?: readonly string[] | undefined;
  format?: string | undefined;
}

/** The address of the form filled with a query, without its defaults. */
export function formAddress({ device, depth, types = [], ...query }: FormQuery): string {
  const { keyword, location, language, targetDomain, format } = query;
  const texts = {
    keyword,
    location,
    language,
    targetDomain,
    format,
    device: device === "desktop" ? undefined : device,
    depth: depth === organicPerPage ? undefined : depth?.toString(),
  };
  const fields = new URLSearchParams();
  for (const [name, value] of Object.entries(texts)) if (value !== undefined) fields.append(name, value);
  for (const type of types) fields.append("types", type);
  return `/playground?${fields.toString()}`;
}
