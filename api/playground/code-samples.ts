import { codeToken, highlighted } from "../pages/highlight.ts";
import { html, type Html } from "../pages/html.ts";
import { bodyInSample, type SampleLanguage, sampleLanguages, searchSamples } from "../search-samples.ts";

const languages = Object.keys(sampleLanguages) as SampleLanguage[]; // Object.keys returns strings.

/** The chosen language. The form sends it with a search, so that the next page shows the same one. */
export function readSample(form: URLSearchParams): SampleLanguage {
  return languages.find((language) => language === form.get("code")) ?? "curl";
}

/** The request in three languages, one of which is visible. The page's script replaces the body in each when the form changes. */
export function codeSamples(
  address: string,
  requestBody: Record<string, unknown>,
  chosen: SampleLanguage = "curl",
): Html {
  const samples = searchSamples(address);
  const panel = (language: SampleLanguage) => {
    const { before, after, indent } = samples[language];
    const body = bodyInSample(requestBody, language, samples[language]);
    const kind = language === "curl" ? "shell" : "";
    return html`<div class="${language}"><button type="button" class="plain" data-copy="code-${language}" hidden>Copy</button><pre id="code-${language}" tabindex="0" role="region" aria-label="${sampleLanguages[language]}">${highlighted(before)}<span data-body="${kind}" data-indent="${indent}">${highlighted(body)}</span>${highlighted(after)}</pre></div>`;
  };
  return html`<div class="code" id="code" data-token="${codeToken.source}">
<div class="tabs" role="radiogroup" aria-label="Programming language">${languages.map((language) => tab(language, chosen))}</div>
${languages.map(panel)}</div>`;
}

const tab = (language: SampleLanguage, chosen: SampleLanguage) =>
  html`<label><input type="radio" form="search" name="code" value="${language}" autocomplete="off"${language === chosen && html` checked`}>${sampleLanguages[language]}</label>`;
