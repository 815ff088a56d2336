import type { Response as HttpResponse } from "express";
import { requestScopeOf } from "../http/request-scope.ts";
import { setJsonHeaders } from "../http/send-json.ts";
import type { UnsentAnswers } from "../search/unsent-answers.ts";
import type { McpRequest } from "./mcp-request.ts";

/**
 * Writes what the SDK answers. The result of a search has the answer twice, and one whole copy is enough to use it. So the first
 * one is written alone, and the rest only after the socket took all of it. A caller that disconnects in the middle gets no
 * error: delivery decides about its charge.
 */
export async function writeAnswer(answer: Response, mcpRequest: McpRequest, unsent: UnsentAnswers): Promise<void> {
  const { request, response, caller } = mcpRequest;
  if (response.closed) return;
  const socket = new SocketWriter(response);
  const countUnsent = unsent.trackUnsent(caller.organizationId, response);
  response.statusCode = answer.status;
  if (!answer.headers.get("content-type")?.startsWith("text/event-stream")) {
    const { first, rest, length } = splitMessage(Buffer.from(await answer.arrayBuffer()), mcpRequest);
    if (length === 0) return void response.end();
    countUnsent(length);
    setJsonHeaders(request, response, length);
    await handOverFirstCopy(socket, first, mcpRequest);
    void socket.handOver(...rest);
    return void response.end();
  }
  if (requestScopeOf(response).draining.aborted) response.setHeader("Connection", "close");
  response.setHeader("Content-Type", "text/event-stream");
  // Keeps nginx from buffering the stream.
  response.setHeader("X-Accel-Buffering", "no");
  for await (const chunk of answer.body ?? []) {
    const { first, rest, length } = splitMessage(Buffer.from(chunk), mcpRequest);
    countUnsent(length);
    await handOverFirstCopy(socket, first, mcpRequest);
    if (!(await socket.handOver(...rest))) return;
  }
  response.end();
}

/** The bytes of a message. The first ones end with the first whole copy of an answer. */
function splitMessage(bytes: Buffer, { delivery }: McpRequest): { first?: Buffer[]; rest: Buffer[]; length: number } {
  const split = delivery?.copies.split(bytes);
  if (!split) return { rest: [bytes], length: bytes.length };
  const length = [...split.first, ...split.rest].reduce((sum, part) => sum + part.length, 0);
  return { ...split, length };
}

async function handOverFirstCopy(socket: SocketWriter, first: Buffer[] | undefined, { delivery }: McpRequest) {
  if (first && (await socket.handOver(...first))) delivery?.flushed();
}

/** Writes to a response and waits until the socket has taken it. */
class SocketWriter {
  readonly #response: HttpResponse;
  readonly #closed: Promise<false>;

  constructor(response: HttpResponse) {
    this.#response = response;
    this.#closed = new Promise((resolve) => void response.once("close", () => resolve(false)));
  }

  /** @returns whether the operating system took all bytes; false if the connection ended before. */
  handOver(...parts: readonly Buffer[]): Promise<boolean> {
    const last = parts.at(-1);
    this.#response.cork();
    for (const part of parts.slice(0, -1)) this.#response.write(part);
    const written = new Promise<boolean>((resolve) => {
      this.#response.write(last, (error) => resolve(!error));
    });
    this.#response.uncork();
    return Promise.race([written, this.#closed]);
  }
}
