import { MockLanguageModelV4, MockProviderV4 } from "ai/test";
import { z } from "zod";

/** Loaded before a recipe for the AI SDK: its model searches once, and then says what the tool returned. */

const tokens = { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 };
const usage = { inputTokens: tokens, outputTokens: { total: 1, text: 1, reasoning: 0 } };
const toolResult = z.object({ content: z.tuple([z.object({ output: z.object({ value: z.unknown() }) })]) });

const model = new MockLanguageModelV4({
  doGenerate: async ({ prompt }) => {
    const last = prompt.at(-1);
    if (last?.role !== "tool") {
      const input = JSON.stringify({ keyword: "best coffee beans" });
      const call = { type: "tool-call" as const, toolCallId: "call_1", toolName: "search", input };
      return { content: [call], finishReason: { unified: "tool-calls", raw: undefined }, usage, warnings: [] };
    }
    const [{ output }] = toolResult.parse(last).content;
    const text = JSON.stringify(output.value);
    return {
      content: [{ type: "text", text }],
      finishReason: { unified: "stop", raw: undefined },
      usage,
      warnings: [],
    };
  },
});

const provider = new MockProviderV4({ languageModels: { "openai/gpt-5": model } });
Object.assign(globalThis, { AI_SDK_DEFAULT_PROVIDER: provider });
