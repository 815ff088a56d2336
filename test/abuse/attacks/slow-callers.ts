import type { Attack, Strength } from "../attack.ts";
import { Connection } from "../callers/connection.ts";
import { honestBeside, honestOrganizations, judgeHonest } from "../judges/honest-callers.ts";
import { MemoryWatch, inMb } from "../judges/memory.ts";

const callers: Record<Strength, number> = { quick: 60, full: 800 };
const boundMs = 60_000;
const byteEveryMs = 500;
const grownBytesMax = 100 * 1_048_576;
const paths = ["/v1/serp/search", "/mcp", "/stripe/webhook", "/billing/sign-in", "/billing/topup", "/v1/usage"];

/** Callers that send one byte now and then, and so hold a connection each. */
export const slowCallers: Attack = {
  name: "slow-callers",
  tried:
    "requests whose head or body comes one byte at a time, or that expect 100-continue and send nothing, on every path that takes a body",
  stack: { payments: true },
  run: async (stack, strength) => {
    const { service, apiUrl } = stack;
    const [api] = service.apis;
    if (!api) throw new Error("there is no API");
    const { token } = await service.organization();
    const honest = { organizations: await honestOrganizations(stack, 4), perSecond: 5 };
    const memory = new MemoryWatch(api);
    let ended = 0;
    const answers = await honestBeside(stack, honest, () =>
      Promise.all(
        Array.from({ length: callers[strength] }, async (_, at) => {
          const path = paths[Math.floor(at / slowParts.length) % paths.length] ?? "";
          if (await isEnded(apiUrl, path, token, slowParts[at % slowParts.length] ?? "head")) ended += 1;
        }),
      ),
    );
    memory.stop();
    return [
      {
        promised: "the service ends each within seconds",
        seen: `${ended} of ${callers[strength]} ended`,
        held: ended === callers[strength],
      },
      {
        promised: `and its memory grows by at most ${inMb(grownBytesMax)} MB`,
        seen: memory.toString(),
        held: memory.grownBytes <= grownBytesMax,
      },
      judgeHonest(answers),
    ];
  },
};

/** What is slow about a request: its head, its body, or everything behind a head that asks whether to go on. */
const slowParts = ["head", "body", "permission"] as const;
type SlowPart = (typeof slowParts)[number];

/** What comes before the slow part: nothing but the request line, or a whole head that announces a body. */
function beginning(path: string, token: string, slow: SlowPart): string {
  const line = `POST ${path} HTTP/1.1\r\nhost: x\r\n`;
  if (slow === "head") return `${line}x-slow: `;
  const expect = slow === "permission" ? "expect: 100-continue\r\n" : "";
  return `${line}${expect}authorization: Bearer ${token}\r\ncontent-type: application/json\r\ncontent-length: 16000\r\n\r\n`;
}

/** Drips bytes, or sends no more, until the service closes the connection. @returns whether it did. */
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
