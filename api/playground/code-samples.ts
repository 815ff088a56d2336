import { html, type Html } from "../pages/html.ts";

/**
 * The request in three languages. JSON is the same text in JavaScript and in Python here, because it has neither `null` nor
 * booleans, so the script of the page replaces the body in each sample when the form changes.
 */
export function codeSamples(address: string, requestBody: Record<string, unknown>): Html {
  const url = `${address}/v1/serp/search`;
  const json = JSON.stringify(requestBody);
  const body = html`<span data-body>${json}</span>`;
  const samples = [
    {
      name: "curl",
      code: html`curl -s ${url} \\
  -H "Authorization: Bearer $TOKEN" \\
  -H 'Content-Type: application/json' \\
  -d '<span data-body="shell">${inShell(json)}</span>'`,
    },
    {
      name: "JavaScript",
      code: html`const response = await fetch("${url}", {
  method: "POST",
  headers: {
    "Authorization": ${"`Bearer ${process.env.TOKEN}`"},
    "Content-Type": "application/json",
  },
  body: JSON.stringify(${body}),
});
console.log(await response.json());`,
    },
    {
      name: "Python",
      code: html`import os, requests

response = requests.post(
    "${url}",
    headers={"Authorization": f"Bearer {os.environ['TOKEN']}"},
    json=${body},
)
print(response.json())`,
    },
  ];
  return html`<section class="panel" id="code" aria-labelledby="code-title"><h2 id="code-title">As code</h2>
${samples.map(({ name, code }) => html`<h3>${name}</h3><pre tabindex="0" role="region" aria-label="${name}">${code}</pre>`)}</section>`;
}

/** Text within single quotes of a shell. */
const inShell = (text: string) => text.replaceAll("'", "'\\''");
