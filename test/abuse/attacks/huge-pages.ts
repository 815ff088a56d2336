import { countCharges } from "../../faults/audit/accounts.ts";
import { tally } from "../../faults/scenarios/statistics.ts";
import { currentMessage } from "../../harness/clients/agent.ts";
import type { Reply } from "../../harness/stubs/serper-stub.ts";
import type { Attack, Finding, Strength } from "../attack.ts";
import type { AttackStack } from "../attack-stack.ts";
import { Connection } from "../../harness/clients/connection.ts";
import { toolCallBytes } from "../callers/requests.ts";
import { honestBeside, honestOrganizations, judgeHonest } from "../judges/honest-callers.ts";
import { inMb, MemoryWatch } from "../judges/memory.ts";

const mib = 1_048_576;
/** `mem_limit` of docker compose, for the API and for the worker. */
const containerBytes = 512 * mib;
const answerBytesMax = 2 * mib;
/** The text copy of an MCP answer has 100 KiB, in which each quote and backslash is escaped once more. */
const copyBytesMax = mib / 4;
const answerMsMax = 60_000;
const pageBytes = 3.9 * mib;
const sizes: Record<Strength, { inFlight: number; leftUnread: number }> = {
  quick: { inFlight: 2, leftUnread: 10 },
  full: { inFlight: 16, leftUnread: 100 },
};

type Over = "REST" | "MCP";

/** The provider sends pages just below the size limit, with texts longer than any real page has. */
export const hugePages: Attack = {
  name: "huge-pages",
  tried:
    "searches of depth 100 over REST and MCP at once, with pages of 3.9 MB from the provider; then many answers over MCP unread",
  run: async (stack, strength) => {
    const { inFlight, leftUnread } = sizes[strength];
    const { service } = stack;
    const [worker] = service.workers;
    if (!worker) throw new Error("there is no worker");
    const payer = await service.organization({ creditMils: 1_000_000 });
    const memory = { api: new MemoryWatch(stack.api), worker: new MemoryWatch(worker) };
    const honest = { organizations: await honestOrganizations(stack, 2), perSecond: 2 };
    stack.provider.otherwise = onlyFor("huge", stack.provider.otherwise);
    const answers: HugeAnswer[] = [];
    const honestAnswers = await honestBeside(stack, honest, async () => {
      for (const over of ["REST", "MCP"] as const) {
        const asked = Array.from({ length: inFlight }, (_, n) =>
          search(stack, payer.token, { over, keyword: `huge ${over} ${n}` }),
        );
        answers.push(...(await Promise.all(asked)));
      }
      await leaveAnswersUnread(stack, leftUnread);
    });
    await service.rest();
    const paid = await countCharges(service.database, payer.organizationId);
    return [
      judgeAnswers(answers, paid),
      judgeMemory("API", memory.api.stop()),
      judgeMemory("worker", memory.worker.stop()),
      judgeHonest(honestAnswers),
    ];
  },
};

/** Sends equal searches of one organization, up to the concurrency of its plan, and reads nothing. */
async function leaveAnswersUnread({ service, apiUrl: url }: AttackStack, count: number): Promise<void> {
  const { organizationId, token } = await service.organization({
    creditMils: 1_000_000,
    terms: { concurrency: count },
  });
  const connections = await Promise.all(Array.from({ length: count }, () => Connection.open(url)));
  const query = { keyword: "huge and unread", depth: 100 };
  for (const connection of connections)
    connection.send(toolCallBytes({ url, token }, { id: 1, session: "none", query }));
  await service.until(async () => (await countCharges(service.database, organizationId)) === count);
  await service.until(async () => (await service.holdsOf(organizationId)).open === 0);
  for (const connection of connections) connection.reset();
}

/** Ten results with long texts and sitelinks for the attacker's searches; the usual page for others. */
function onlyFor(word: string, usual: Reply): Reply {
  const pages = new Map<number, Buffer>();
  const pageOf = (page: number): Buffer => {
    const known = pages.get(page);
    if (known !== undefined) return known;
    const text = '"quoted" '.repeat(pageBytes / 10 / 2 / '\\"quoted\\" '.length);
    const link = text.slice(0, text.length / 30);
    const organic = Array.from({ length: 10 }, (_, row) => {
      const at = `https://pumps.example/${page}/${row}`;
      const sitelinks = Array.from({ length: 30 }, (__, n) => ({ title: link, link: `${at}/${n}` }));
      return { title: `Pump ${page}.${row}`, link: at, snippet: text, sitelinks, position: row + 1 };
    });
    const body = Buffer.from(JSON.stringify({ organic, credits: 1 }));
    pages.set(page, body);
    return body;
  };
  return (request, response) => {
    if (!String(request.body["q"]).startsWith(word)) return usual(request, response);
    response.writeHead(200, { "content-type": "application/json" }).end(pageOf(Number(request.body["page"])));
  };
}

interface HugeAnswer {
  over: Over;
  status: number;
  bytes: number;
  results: number;
}

/** @returns the answer as its caller parses it. */
async function search(
  { apiUrl }: AttackStack,
  token: string,
  { over, keyword }: { over: Over; keyword: string },
): Promise<HugeAnswer> {
  const query = { keyword, depth: 100 };
  const { headers, body } =
    over === "MCP"
      ? currentMessage("tools/call", { name: "serp_search", arguments: query })
      : { headers: { "content-type": "application/json" }, body: JSON.stringify(query) };
  const response = await fetch(new URL(over === "MCP" ? "/mcp" : "/v1/serp/search", apiUrl), {
    method: "POST",
    headers: { ...headers, authorization: `Bearer ${token}` },
    body,
    signal: AbortSignal.timeout(answerMsMax),
  });
  const bytes = Buffer.from(await response.arrayBuffer());
  const whole = JSON.parse(bytes.toString());
  const answer = over === "MCP" ? whole.result?.structuredContent : whole;
  return { over, status: response.status, bytes: bytes.length, results: answer?.results?.length ?? 0 };
}

function judgeAnswers(answers: readonly HugeAnswer[], paid: number): Finding {
  const bytesOf = (over: Over) => Math.max(0, ...answers.filter((one) => one.over === over).map(({ bytes }) => bytes));
  const isWhole = ({ status, results }: HugeAnswer) => status === 200 && results > 0;
  return {
    promised: `each is answered with results and paid, in at most ${inMb(answerBytesMax)} MB, over MCP ${inMb(answerBytesMax + copyBytesMax)} MB`,
    seen: [
      `${tally(answers.map(({ over, status }) => `${over} ${status}`))}; ${paid} paid`,
      `REST ${inMb(bytesOf("REST"))} MB, MCP ${inMb(bytesOf("MCP"))} MB`,
    ].join("; "),
    held:
      answers.every(isWhole) &&
      paid === answers.length &&
      bytesOf("REST") <= answerBytesMax &&
      bytesOf("MCP") <= answerBytesMax + copyBytesMax,
  };
}

const judgeMemory = (process: string, watch: MemoryWatch): Finding => ({
  promised: `the ${process} stays within the ${inMb(containerBytes)} MB of its container`,
  seen: watch.toString(),
  held: watch.mostBytes <= containerBytes,
});
