import { randomUUID } from "node:crypto";
import type { CallToolResult } from "@modelcontextprotocol/server";
import { shortText } from "./short-text.ts";

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
   * The bytes of a message that the SDK wrote: up to the end of its first copy of the answer, and the rest in parts, of which
   * one is the answer itself: another copy of it would take as much memory again until the caller has read it.
   * @returns undefined for a message without an answer, such as a progress notification.
   */
  split(message: Buffer): { first: Buffer; rest: Buffer[] } | undefined {
    const text = JSON.stringify(this.#mark);
    const at = message.indexOf(text);
    if (at < 0) return undefined;
    const structured = JSON.stringify({ copy: this.#mark });
    const secondAt = message.indexOf(structured, at);
    if (secondAt < 0) throw new Error("the SDK wrote a result without structured content");
    return {
      first: Buffer.concat([message.subarray(0, at), shortText(this.#body)]),
      rest: [message.subarray(at + text.length, secondAt), this.#body, message.subarray(secondAt + structured.length)],
    };
  }
}
