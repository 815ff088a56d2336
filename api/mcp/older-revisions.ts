import { isLegacyRequest, type Server, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import { z } from "zod";

/**
 * JSON for the revisions before 2026-07-28. The protocol allows JSON or a stream of events. The SDK's handler always answers
 * these revisions with a stream, even if it has one event, and passes it through a second one. Only progress needs a stream.
 */

const progressMessage = z.object({
  params: z.object({ _meta: z.object({ progressToken: z.union([z.string(), z.number()]) }) }),
});

/** Whether a message is of these revisions and gets no progress notifications. */
export async function isAnsweredInJson(request: Request, message: unknown): Promise<boolean> {
  // The current revision requires this header, so its messages are left to the SDK's handler without checking them twice.
  if (request.headers.has("mcp-method") || progressMessage.safeParse(message).success) return false;
  return isLegacyRequest(request, message);
}

/** Answers such a message. Once `cancelled` is aborted, the answer is an empty stream: a cancelled request gets no message. */
export async function answerInJson(
  server: Server,
  request: Request,
  message: unknown,
  cancelled: AbortSignal,
): Promise<Response> {
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
  await server.connect(transport);
  const { promise: cancellation, resolve } = Promise.withResolvers<Response>();
  const nothing = () => resolve(new Response(null, { headers: { "content-type": "text/event-stream" } }));
  cancelled.addEventListener("abort", nothing, { once: true });
  return Promise.race([transport.handleRequest(request, { parsedBody: message }), cancellation]);
}
