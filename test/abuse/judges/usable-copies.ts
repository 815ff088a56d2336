import { responsesIn } from "../../harness/clients/responses.ts";

/**
 * The text of each answer that a caller can use, by its request id: an answer that arrived whole, wherever it is in the received
 * bytes. A caller who cheats takes the first whole copy from a response that never ended.
 */
export function usableAnswers(received: Buffer): Map<string, string> {
  const answers = new Map<string, string>();
  for (const { body } of responsesIn(received)) {
    for (const { index } of body.matchAll(/"\{\\"requestId\\"/g)) note(answers, textAt(body, index));
    for (const { index } of body.matchAll(/\{"requestId"/g)) note(answers, objectAt(body, index));
  }
  return answers;
}

function note(answers: Map<string, string>, text: string | undefined): void {
  if (text === undefined) return;
  const { requestId, results } = JSON.parse(text);
  if (typeof requestId === "string" && Array.isArray(results)) answers.set(requestId, text);
}

const stringEnd = /(?<!\\)(?:\\\\)*"/g;

/** The content of the JSON string that begins here, if it ends. */
function textAt(body: string, at: number): string | undefined {
  stringEnd.lastIndex = at + 1;
  const end = stringEnd.exec(body);
  return end ? JSON.parse(body.slice(at, end.index + end[0].length)) : undefined;
}

/** The JSON object that begins here, if it ends. */
function objectAt(body: string, at: number): string | undefined {
  const mark = /["{}]/g;
  let depth = 0;
  for (mark.lastIndex = at; ; ) {
    const found = mark.exec(body);
    if (!found) return undefined;
    if (found[0] === '"') {
      stringEnd.lastIndex = found.index + 1;
      const end = stringEnd.exec(body);
      if (!end) return undefined;
      mark.lastIndex = stringEnd.lastIndex;
      continue;
    }
    depth += found[0] === "{" ? 1 : -1;
    if (depth === 0) return body.slice(at, found.index + 1);
  }
}
