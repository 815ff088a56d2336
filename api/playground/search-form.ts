import type { Plan } from "../../shared/credits/plans.ts";
import { depthMax, organicPerPage } from "../../shared/query/depth.ts";
import { resultTypes } from "../../shared/results.ts";
import { type Option, optionList } from "../pages/form.ts";
import { html, type Html } from "../pages/html.ts";
import {
  bodyInSample,
  codeToken,
  highlighted,
  type SampleLanguage,
  sampleLanguages,
  searchSamples,
} from "../search-samples.ts";

const textNames = ["location", "language", "device", "targetDomain", "format"];

/** The body of the equivalent POST /v1/serp/search. @param typed the fields of the form as typed; empty ones are left out. */
export function requestBodyOf(typed: URLSearchParams): Record<string, unknown> {
  const given = textNames.filter((name) => typed.get(name)).map((name) => [name, typed.get(name)]);
  const [depth, types] = [typed.get("depth"), typed.getAll("types")];
  return {
    keyword: typed.get("keyword") ?? "",
    ...Object.fromEntries(given),
    ...(depth && { depth: Number(depth) }),
    ...(types.length > 0 && { types }),
  };
}

/** The fields that are never folded. */
export const unfolded: readonly string[] = ["keyword", "location", "device"];

const offeredDepths = [20, 30, 50, 100];

const devices = Object.entries({ "": "Desktop", mobile: "Mobile" });
const formats = Object.entries({ "": "Full", compact: "Compact" });

/** What the form shows besides its fields. */
export interface FormLook {
  /** Whether the keyword has the focus: it has it until there is an answer to read. */
  hasFocus: boolean;
  /** Whether a refusal names a field that is folded. */
  isOpen: boolean;
}

/** The fields of the form. The rarer ones are folded into a line of their values, which the page's script keeps up to date. */
export function searchFields(
  typed: URLSearchParams,
  { maxDepth = depthMax }: Pick<Plan, "maxDepth">,
  { hasFocus, isOpen }: FormLook,
): Html {
  const text = (name: string) => typed.get(name) ?? "";
  const [depth, types] = [text("depth"), typed.getAll("types")];
  // Includes a depth from the address, so that the form shows what it sends.
  const depths = new Set(["", ...offeredDepths.filter((offered) => offered <= maxDepth).map(String), depth]);
  const depthOptions = [...depths].map((value): Option => [value, resultsLabel(value)]);
  const kind = (type: string) =>
    html`<label><input type="checkbox" name="types" value="${type}"${types.includes(type) && html` checked`}> ${type}</label>`;
  return html`<div class="keyword"><label for="keyword">Keyword</label><input id="keyword" name="keyword" value="${text("keyword")}" required autocomplete="off" enterkeyhint="search" data-example="${exampleKeyword}"${hasFocus && html` autofocus`}><button>Search</button></div>
<div class="where">
<label>Device <select name="device">${optionList(devices, text("device"))}</select></label>
<label>Country or place <input name="location" value="${text("location")}" placeholder="United States" list="places" autocomplete="off" enterkeyhint="search" data-suggest></label>
</div>
<details${isOpen && html` open`}><summary><span id="options">${optionsLine(typed)}</span></summary>
<div class="fields">
<label>Language <input name="language" value="${text("language")}" placeholder="English" list="languages" autocomplete="off" data-suggest></label>
<label>Domain <input name="targetDomain" value="${text("targetDomain")}" placeholder="any"></label>
<label>Depth <select name="depth">${optionList(depthOptions, depth)}</select></label>
<label>Format <select name="format">${optionList(formats, text("format"))}</select></label>
</div>
<datalist id="places"></datalist><datalist id="languages"></datalist>
<fieldset class="kinds"><legend>Only these types of element</legend>${resultTypes.map(kind)}</fieldset></details>`;
}

const resultsLabel = (depth: string) => `${depth || organicPerPage} results`;

/** The values of the folded fields in one line. The script writes the same. */
function optionsLine(typed: URLSearchParams): string {
  const said = [
    typed.get("language") || "English",
    typed.get("targetDomain"),
    resultsLabel(typed.get("depth") ?? ""),
    typed.get("format") === "compact" ? "Compact" : "Full",
    typed.getAll("types").join(", "),
  ];
  return said.filter(Boolean).join(" · ");
}

/** A query as requests and the search log have it. */
type FormQuery = Partial<Record<"location" | "language" | "device" | "targetDomain" | "format", string | undefined>> & {
  keyword: string;
  depth?: number;
  types?: readonly string[] | undefined;
};

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

const languages = Object.keys(sampleLanguages) as SampleLanguage[]; // Object.keys returns strings.

/** The chosen language. The form sends it with a search, so that the next page shows the same one. */
export function readSample(form: URLSearchParams): SampleLanguage {
  return languages.find((language) => language === form.get("code")) ?? "curl";
}

/** In the code while the form has no keyword, with which the API would refuse it. */
const exampleKeyword = "coffee";

/** The request in three languages, one of which is visible. The page's script replaces the body in each when the form changes. */
export function codeSamples(
  address: string,
  requestBody: Record<string, unknown>,
  chosen: SampleLanguage = "curl",
): Html {
  const samples = searchSamples(address);
  const panel = (language: SampleLanguage) => {
    const { before, after, indent } = samples[language];
    const body = bodyInSample(
      { ...requestBody, keyword: requestBody["keyword"] || exampleKeyword },
      language,
      samples[language],
    );
    const kind = language === "curl" ? "shell" : "";
    return html`<div class="${language}"><button type="button" class="plain" data-copy="code-${language}" hidden>Copy</button><pre id="code-${language}" tabindex="0" role="region" aria-label="${sampleLanguages[language]}">${highlighted(before)}<span data-body="${kind}" data-indent="${indent}">${highlighted(body)}</span>${highlighted(after)}</pre></div>`;
  };
  return html`<div class="code" id="code" data-token="${codeToken.source}">
<div class="tabs" role="radiogroup" aria-label="Programming language">${languages.map((language) => tab(language, chosen))}</div>
${languages.map(panel)}</div>`;
}

const tab = (language: SampleLanguage, chosen: SampleLanguage) =>
  html`<label><input type="radio" form="search" name="code" value="${language}" autocomplete="off"${language === chosen && html` checked`}>${sampleLanguages[language]}</label>`;
