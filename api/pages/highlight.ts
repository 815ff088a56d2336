import { html, type Html, type Part } from "./html.ts";

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
