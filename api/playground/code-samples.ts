import { html, type Html } from "../pages/html.ts";

const languages = ["curl", "javascript", "python"] as const;

type Sample = (typeof languages)[number];

const names: Record<Sample, string> = { curl: "curl", javascript: "JavaScript", python: "Python" };

/** The chosen language. The form sends it with a search, so that the next page shows the same one. */
export function readSample(form: URLSearchParams): Sample {
  return languages.find((language) => language === form.get("code")) ?? "curl";
}

/**
 * The request in three languages, one of which is visible. The page's script replaces the body in each sample when the form changes.
 * JSON is valid JavaScript and Python here, because it has neither `null` nor booleans.
 */
export function codeSamples(address: string, requestBody: Record<string, unknown>, chosen: Sample): Html {
  const url = `${address}/v1/serp/search`;
  const json = JSON.stringify(requestBody, undefined, 2);
  const code: Record<Sample, Html> = {
    curl: html`curl -s ${url} \\
  -H "Authorization: Bearer $TOKEN" \\
  -H 'Content-Type: application/json' \\
  -d '<span data-body="shell" data-indent="  ">${indented(inShell(json), "  ")}</span>'`,
    javascript: html`const url = "${url}";
const response = await fetch(url, {
  method: "POST",
  headers: {
    "Authorization": ${"`Bearer ${process.env.TOKEN}`"},
    "Content-Type": "application/json",
  },
  body: JSON.stringify(<span data-body data-indent="  ">${indented(json, "  ")}</span>),
});
console.log(await response.json());`,
    python: html`import os, requests

token = os.environ["TOKEN"]
response = requests.post(
    "${url}",
    headers={"Authorization": f"Bearer {token}"},
    json=<span data-body data-indent="    ">${indented(json, "    ")}</span>,
)
print(response.json())`,
  };
  return html`<section class="panel beside" id="code" aria-labelledby="code-title">
<div class="head"><h2 id="code-title">As code</h2>
<div class="tabs" role="radiogroup" aria-label="Language">${languages.map((language) => tab(language, chosen))}</div></div>
${languages.map((language) => html`<div class="${language}"><button type="button" class="plain" data-copy="code-${language}" hidden>Copy</button><pre id="code-${language}" tabindex="0" role="region" aria-label="${names[language]}">${code[language]}</pre></div>`)}</section>`;
}

const tab = (language: Sample, chosen: Sample) =>
  html`<label><input type="radio" form="search" name="code" value="${language}" autocomplete="off"${language === chosen && html` checked`}>${names[language]}</label>`;

const indented = (json: string, indent: string) => json.replaceAll("\n", `\n${indent}`);

/** Escapes text for single quotes in a shell. */
const inShell = (text: string) => text.replaceAll("'", "'\\''");
