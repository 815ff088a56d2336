import { z } from "zod";
import { countFitting } from "../../shared/search-answer.ts";

/** As much as a page of a hundred results with all their details has. Models read less, and each character is escaped. */
const bytesMax = 512 * 1024;
/** A string in JSON ends at a quote behind an even number of backslashes. This way to find it needs no stack. */
const string = String.raw`".*?(?<!\\)(?:\\\\)*"`;
/** What a model does not need beside the `url`. */
const derivedField = `"(?:domain|breadcrumb)":${string}`;
// The list of results itself stays, also if it is empty.
const emptyField = String.raw`"(?!results")\w+":(?:""|\[\]|\{(?:"\w+":(?:""|\[\]),?)*\})`;
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
 * @returns the text as a JSON string.
 */
export function shortText(body: Buffer): Buffer {
  // One character for each byte: all that is found or escaped here is ASCII, and no byte of another character looks like it.
  const short = cutFields(body);
  const fitting = short.length > bytesMax ? cutFields(firstResults(body)) : short;
  return Buffer.from(JSON.stringify(fitting), "latin1");
}

const cutFields = (body: Buffer) => body.toString("latin1").replace(unreadFields, "");

const answerSchema = z.looseObject({ results: z.array(z.unknown()) });

/** The answer with as many results as fit; as it is if it has none. */
function firstResults(body: Buffer): Buffer {
  const { data } = answerSchema.safeParse(JSON.parse(body.toString()));
  if (!data) return body;
  const { results, ...others } = data;
  const first = results.slice(0, countFitting(results, bytesMax));
  return Buffer.from(JSON.stringify({ ...others, truncated: true, results: first }));
}
