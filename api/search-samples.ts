import { html, type Html, type Part } from "./pages/html.ts";

/** Code that callers copy: with a time-out, a check of the status and, for a search, a key. The token comes from the environment. */

export const sampleLanguages = { curl: "curl", javascript: "JavaScript", python: "Python" };
export type SampleLanguage = keyof typeof sampleLanguages;

/** What stands before and behind the body of the request. JSON is valid in all three languages, because the body has no `null` and no booleans. */
interface SearchSample {
  before: string;
  after: string;
  /** Of the lines of the body, from the second on. */
  indent: string;
}

/** @param address of the API, as its caller reaches it. */
export function searchSamples(address: string): Record<SampleLanguage, SearchSample> {
  const url = `${address}/v1/serp/search`;
  return {
    curl: {
      before: `curl -sS --fail-with-body --max-time 35 --retry 3 ${url} \\
  -H "Authorization: Bearer $SERPMILL_TOKEN" \\
  -H "Idempotency-Key: $(openssl rand -hex 16)" \\
  -H 'Content-Type: application/json' \\
  -d '`,
      after: "'",
      indent: "  ",
    },
    javascript: {
      before: `const response = await fetch("${url}", {
  method: "POST",
  headers: {
    "Authorization": \`Bearer \${process.env.SERPMILL_TOKEN}\`,
    "Idempotency-Key": crypto.randomUUID(), // A repeat with the same key is free.
    "Content-Type": "application/json",
  },
  body: JSON.stringify(`,
      after: `),
  signal: AbortSignal.timeout(35_000), // The API answers within 30 s.
});
const answer = await response.json();
if (!response.ok) throw new Error(\`\${answer.error.code}: \${answer.error.message}\`);
console.log(answer);`,
      indent: "  ",
    },
    python: {
      before: `import os, requests, uuid

response = requests.post(
    "${url}",
    headers={
        "Authorization": f"Bearer {os.environ['SERPMILL_TOKEN']}",
        "Idempotency-Key": str(uuid.uuid4()),  # A repeat with the same key is free.
    },
    json=`,
      after: `,
    timeout=35,  # The API answers within 30 s.
)
if not response.ok:
    raise SystemExit(response.text)
print(response.json())`,
      indent: "    ",
    },
  };
}

/** The body as it stands in a sample. */
export function bodyInSample(body: object, language: SampleLanguage, { indent }: SearchSample): string {
  const json = JSON.stringify(body, undefined, 2);
  return (language === "curl" ? json.replaceAll("'", "'\\''") : json).replaceAll("\n", `\n${indent}`);
}

/** Code that searches, in one language. */
export function searchCode(language: SampleLanguage, address: string, body: object): string {
  const sample = searchSamples(address)[language];
  return sample.before + bodyInSample(body, language, sample) + sample.after;
}

/** Code that reads the balance. */
export function usageCode(address: string): Record<SampleLanguage, string> {
  const url = `${address}/v1/usage`;
  return {
    curl: `curl -sS --fail-with-body --max-time 35 --retry 3 ${url} -H "Authorization: Bearer $SERPMILL_TOKEN"`,
    javascript: `const response = await fetch("${url}", {
  headers: { "Authorization": \`Bearer \${process.env.SERPMILL_TOKEN}\` },
  signal: AbortSignal.timeout(35_000),
});
const usage = await response.json();
if (!response.ok) throw new Error(\`\${usage.error.code}: \${usage.error.message}\`);
console.log(usage);`,
    python: `import os, requests

headers = {"Authorization": f"Bearer {os.environ['SERPMILL_TOKEN']}"}
response = requests.get("${url}", headers=headers, timeout=35)
if not response.ok:
    raise SystemExit(response.text)
print(response.json())`,
  };
}

/**
 * The names, texts, numbers and comments of JSON, and of commands and programs with JSON in them. Each group is named like its class
 * in the style sheet. A text is in one line.
 */
export const codeToken =
  /(?<key>"(?:[^"\\]|\\.)*"(?=:))|(?<string>"(?:[^"\\]|\\.)*"|'[^'\n]*'|`[^`\n]*`)|(?<=\s)(?<comment>(?:\/\/|#) .*)|(?<=[\s[(=])(?<number>\d[\d_.]*)(?=[\s,)\]])/g;

/** Code with its tokens marked for the style sheet. The playground's script does the same to the body that a person edits. */
export function highlighted(code: string): Html {
  const parts: Part[] = [];
  let end = 0;
  for (const { index, 0: token, groups = {} } of code.matchAll(codeToken)) {
    const kind = Object.keys(groups).find((name) => groups[name] !== undefined);
    parts.push(code.slice(end, index), html`<span class="${kind}">${token}</span>`);
    end = index + token.length;
  }
  return html`${parts}${code.slice(end)}`;
}
