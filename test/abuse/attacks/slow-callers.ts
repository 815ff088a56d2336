import type { Attack, Strength } from "../attack.ts";
import { Connection } from "../callers/connection.ts";
import { judgeHonestBeside } from "../judges/honest-callers.ts";
import { judgeGrowth, MemoryWatch } from "../judges/memory.ts";

const callers: Record<Strength, number> = { quick: 60, full: 800 };
const boundMs = 60_000;
const byteEveryMs = 500;
const grownBytesMax = 100 * 1_048_576;
const paths = ["/v1/serp/search", "/mcp", "/stripe/webhook", "/billing/sign-in", "/billing/topup", "/v1/usage"];

/** Callers that send a byte now and then, each on its own connection. */
export const slowCallers: Attack = {
  name: "slow-callers",
  tried:
    "requests whose head or body comes one byte at a time, or that expect 100-continue and send nothing, on every path that takes a body",
  stack: { payments: true },
  run: async (stack, strength) => {
    const { service, apiUrl } = stack;
    const { token } = await service.organization();
    const memory = new MemoryWatch(stack.api);
    let ended = 0;
    const honest = await judgeHonestBeside(stack, () =>
      Promise.all(
        Array.from({ length: callers[strength] }, async (_, at) => {
          const path = paths[Math.floor(at / slowParts.length) % paths.length] ?? "";
          if (await isEnded(apiUrl, path, token, slowParts[at % slowParts.length] ?? "head")) ended += 1;
        }),
      ),
    );
    return [
      {
        promised: "the service closes each within seconds",
        seen: `${ended} of ${callers[strength]} ended`,
        held: ended === callers[strength],
      },
      judgeGrowth(memory.stop(), grownBytesMax),
      honest,
    ];
  },
};

/** The slow part of a request: its head, its body, or everything after a head with `expect: 100-continue`. */
const slowParts = ["head", "body", "permission"] as const;
type SlowPart = (typeof slowParts)[number];

/** What is sent before the slow part: the request line, or a whole head that announces a body. */
function beginning(path: string, token: string, slow: SlowPart): string {
  const line = `POST ${path} HTTP/1.1\r\nhost: x\r\n`;
  if (slow === "head") return `${line}x-slow: `;
  const expect = slow === "permission" ? "expect: 100-continue\r\n" : "";
  return `${line}${expect}authorization: Bearer ${token}\r\ncontent-type: application/json\r\ncontent-length: 16000\r\n\r\n`;
}

/** Sends byte after byte, or nothing, until the service closes the connection. @returns whether it did. */
async function isEnded(url: string, path: string, token: string, slow: SlowPart): Promise<boolean> {
  const connection = await Connection.open(url);
  connection.send(beginning(path, token, slow));
  const dripping = setInterval(() => slow !== "permission" && connection.send("a"), byteEveryMs);
  await connection.readUntil(() => connection.isClosed, boundMs);
  clearInterval(dripping);
  const { isClosed } = connection;
  connection.reset();
  return isClosed;
}
