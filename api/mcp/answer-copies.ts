import { randomUUID } from "node:crypto";
import type { CallToolResult } from "@modelcontextprotocol/server";
import { z } from "zod";
import { countFitting } from "../../shared/search-answer.ts";

/**
 * The answer of a search in a tool result, which has it twice: in short as text, and whole as `structuredContent`. The SDK
 * writes the message around it with a mark in place of each copy, and {@link split} puts the bytes there: the SDK would parse
 * and serialize them again.
 */
export class AnswerCopies {
  readonly #body: Buffer;
  // Random: a caller chooses other parts of the message, such as its id.
  readonly #mark = randomUUID();

  /** @param body the answer, as JSON. */
  constructor(body: Buffer) {
    this.#body = body;
  }

  /** The result for the SDK, with marks. */
  get result(): CallToolResult {
    return { content: [{ type: "text", text: this.#mark }], structuredContent: { copy: this.#mark } };
  }

  /**
   * The bytes of a message that the SDK wrote: up to the end of its first whole copy of the answer, and the rest. One of the parts
   * is the answer itself: another copy of it would take as much memory again until the caller has read it.
   * @returns undefined for a message without an answer, such as a progress notification.
   */
  split(message: Buffer): { first: Buffer[]; rest: Buffer[] } | undefined {
    const text = JSON.stringify(this.#mark);
    const at = message.indexOf(text);
    if (at < 0) return undefined;
    const structured = JSON.stringify({ copy: this.#mark });
    const secondAt = message.indexOf(structured, at);
    if (secondAt < 0) throw new Error("the SDK wrote a result without structured content");
    const short = shortText(this.#body);
    const first = Buffer.concat([message.subarray(0, at), short.text]);
    const second = [message.subarray(at + text.length, secondAt), this.#body];
    const end = message.subarray(secondAt + structured.length);
    return short.isTruncated ? { first: [first, ...second], rest: [end] } : { first: [first], rest: [...second, end] };
  }
}

/**
 * As much as models read. With both copies, an answer of 800 KiB stays below 1 MiB. That is the most that the official SDK for
 * Python takes as one event: it drops a larger one, and the search was charged. The text may have twice as many bytes, because
 * each character may be escaped.
 */
const bytesMax = 100 * 1024;
/** A string in JSON ends at a quote behind an even number of backslashes. This way to find it needs no stack. */
const string = String.raw`".*?(?<!\\)(?:\\\\)*"`;
/** What a model does not need beside the `url`. */
const derivedField = `"(?:domain|breadcrumb)":${string}`;
// Lazy, so that a text without spaces, which may be a name, needs no stack either.
const name = String.raw`\w+?`;
// The list of results itself stays, also if it is empty.
const emptyField = String.raw`"(?!results")${name}":(?:""|\[\]|\{(?:"${name}":(?:""|\[\]),?)*\})`;
const unread = `(?:${derivedField}|${emptyField})`;
/** Fields with the comma before them; without one before them, with the one after them. */
const unreadFields = new RegExp(`,${unread}|${unread},?`, "gs");

/**
 * An answer as a model reads it: the same JSON, whose results have no empty fields and neither `domain` nor `breadcrumb`.
 * Models pay for each character that they read, and most fields of most results are empty.
 *
 * The fields are cut out of the text, since parsing and serializing an answer takes three times as long. A text of a result never
 * looks like a field: JSON has a backslash before each quote in it.
 *
 * Of an oversized answer it has the first results and the mark `truncated`.
 * @param body the answer, as the worker wrote it.
 * @returns the text as a JSON string, and whether results are missing.
 */
export function shortText(body: Buffer): { text: Buffer; isTruncated: boolean } {
  // One character for each byte: all that is found or escaped here is ASCII, and no byte of another character looks like it.
  const short = cutFields(body);
  const fewer = short.length > bytesMax ? firstResults(body) : undefined;
  const text = Buffer.from(JSON.stringify(fewer ? cutFields(fewer) : short), "latin1");
  return { text, isTruncated: fewer !== undefined };
}

const cutFields = (body: Buffer) => body.toString("latin1").replace(unreadFields, "");

const answerSchema = z.looseObject({ results: z.array(z.unknown()) });

/** The answer with as many results as fit; undefined if it has none. */
function firstResults(body: Buffer): Buffer | undefined {
  const { data } = answerSchema.safeParse(JSON.parse(body.toString()));
  if (!data) return undefined;
  const { results, ...others } = data;
  const first = results.slice(0, countFitting(results, bytesMax));
  return Buffer.from(JSON.stringify({ ...others, truncated: true, results: first }));
}
