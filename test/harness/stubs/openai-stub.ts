import { text } from "node:stream/consumers";
import { z } from "zod";
import { type Listening, listen } from "./listen.ts";

const request = z.object({
  input: z.array(z.looseObject({ type: z.string().optional(), output: z.unknown().optional() })),
});

/** Speaks OpenAI's Responses API: its model calls the function `search` once, and then says what that returned. */
export function startOpenAiStub(keyword: string): Promise<Listening> {
  return listen((incoming, response) => {
    void text(incoming).then((body) => {
      const last = request.parse(JSON.parse(body)).input.at(-1);
      const output = last?.type === "function_call_output" ? message(String(last.output)) : call(keyword);
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ id: "resp_1", object: "response", status: "completed", output: [output] }));
    });
  });
}

const call = (keyword: string) => ({
  type: "function_call",
  id: "fc_1",
  call_id: "call_1",
  name: "search",
  arguments: JSON.stringify({ keyword }),
  status: "completed",
});

const message = (words: string) => ({
  type: "message",
  id: "msg_1",
  role: "assistant",
  status: "completed",
  content: [{ type: "output_text", text: words, annotations: [] }],
});
