import type { Response as HttpResponse } from "express";
import { requestScopeOf } from "../http/request-scope.ts";
import { setJsonHeaders } from "../http/send-json.ts";
import type { UnsentAnswers } from "../search/unsent-answers.ts";
import type { McpRequest } from "./mcp-request.ts";

// Inside a JSON string a quotation mark has a backslash before it, so this is never a part of a value.
const secondCopy = Buffer.from('"structuredContent":');

/**
 * Writes what the SDK answers. The result of a search has the answer twice, as text and then as `structuredContent`, and one
 * copy is enough to use it. So the first copy is written alone, and the rest only after the socket took all of it. A caller
 * that disconnects in the middle gets no error: delivery decides about its charge.
 */
export async function writeAnswer(answer: Response, mcpRequest: McpRequest, unsent: UnsentAnswers): Promise<void> {
  const { request, response, caller } = mcpRequest;
  if (response.closed) return;
  const socket = new SocketWriter(response);
  const countUnsent = unsent.of(caller.organizationId, response);
  response.statusCode = answer.status;
  if (!answer.headers.get("content-type")?.startsWith("text/event-stream")) {
    const body = Buffer.from(await answer.arrayBuffer());
    if (body.length === 0) return void response.end();
    countUnsent(body.length);
    setJsonHeaders(request, response, body.length);
    return void response.end(await handOverFirstCopy(socket, body, mcpRequest));
  }
  if (requestScopeOf(response).draining.aborted) response.setHeader("Connection", "close");
  response.setHeader("Content-Type", "text/event-stream");
  // Keeps nginx from buffering the stream.
  response.setHeader("X-Accel-Buffering", "no");
  for await (const chunk of answer.body ?? []) {
    const event = Buffer.from(chunk);
    countUnsent(event.length);
    const rest = await handOverFirstCopy(socket, event, mcpRequest);
    if (!(await socket.handOver(rest))) return;
  }
  response.end();
}

/** Writes the bytes as far as the first copy of an answer goes, if they are one. @returns the rest, which is not written. */
async function handOverFirstCopy(socket: SocketWriter, bytes: Buffer, { handedOver }: McpRequest): Promise<Buffer> {
  const end = handedOver ? bytes.indexOf(secondCopy) : -1;
  if (!handedOver || end < 0) return bytes;
  if (await socket.handOver(bytes.subarray(0, end))) handedOver();
  return bytes.subarray(end);
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
  handOver(bytes: Buffer): Promise<boolean> {
    const written = new Promise<boolean>((resolve) => {
      this.#response.write(bytes, (error) => resolve(!error));
    });
    return Promise.race([written, this.#closed]);
  }
}
