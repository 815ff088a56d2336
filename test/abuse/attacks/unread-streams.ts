import { setTimeout as sleep } from "node:timers/promises";
import { tally } from "../../faults/scenarios/statistics.ts";
import { becomes } from "../../harness/assertions/eventually.ts";
import { Exposition } from "../../harness/assertions/metrics.ts";
import { type PageVisitor, signIn } from "../../harness/clients/page-visitor.ts";
import type { Attack, Finding } from "../attack.ts";
import type { AttackStack } from "../attack-stack.ts";
import { Connection } from "../../harness/clients/connection.ts";
import { lengthenLedger } from "../long-ledger.ts";
import { responsesIn } from "../../harness/clients/responses.ts";
import { honestBeside, honestOrganizations, judgeHonest } from "../judges/honest-callers.ts";
import { judgeGrowth, MemoryWatch } from "../judges/memory.ts";

const streamsOfSession = 6; // One more than a session may have.
const streamsMax = 100;
const downloadsMax = 20;
const boundMs = 60_000;
const idPrefix = `req_${"x".repeat(200)}`; // Long ids make a large export.
const pageEveryMs = 300;
// Mostly garbage: what 20 exports read before their socket buffers are full.
const grownBytesMax = 250 * 1_048_576;
// An export ends after a minute even if its caller does not read it.
const endedMsMax = 90_000;
const organizations = 25;
const entries = 30_000;
const unreadMs = 10_000;

/** Pages request exports and live updates and read neither. */
export const unreadStreams: Attack = {
  name: "unread-streams",
  tried: `exports of 9 MB and ${streamsOfSession} streams of live updates each by ${organizations} organizations, unread`,
  run: async (stack) => {
    const attackers = await honestOrganizations(stack, organizations);
    for (const attacker of attackers) await lengthenLedger(stack.service, attacker, { entries, idPrefix });
    const visitors: PageVisitor[] = [];
    for (const { token } of attackers) visitors.push(await signIn(stack.service, { token }));
    const other = await signIn(stack.service, await stack.service.organization());
    const memory = new MemoryWatch(stack.api);
    let opened: Opened | undefined;
    const views: number[] = [];
    // The attackers also search, so that their pages keep changing.
    const answers = await honestBeside(stack, { organizations: attackers, perSecond: 10 }, async () => {
      opened = await openAll(stack, visitors);
      for (const untilMs = performance.now() + unreadMs; performance.now() < untilMs; await sleep(pageEveryMs))
        views.push((await other.get("/billing")).status);
    });
    if (!opened) throw new Error("nothing was opened");
    const findings = [
      judgeBounds(opened),
      judgeGrowth(memory.stop(), grownBytesMax),
      judgeViews(views),
      judgeHonest(answers),
    ];
    return [...findings, await judgeEnd(stack, visitors, opened)];
  },
};

interface Opened {
  downloads: Connection[];
  streams: Connection[];
}

/** Requests everything, and reads only the first byte of each response. */
async function openAll({ apiUrl }: AttackStack, visitors: readonly PageVisitor[]): Promise<Opened> {
  const ask = async (path: string, { cookie = "" }: PageVisitor) => {
    const connection = await Connection.open(apiUrl);
    connection.send(`GET ${path} HTTP/1.1\r\nhost: ${new URL(apiUrl).host}\r\ncookie: ${cookie}\r\n\r\n`);
    await connection.readBytes(1, boundMs);
    return connection;
  };
  const downloads = await Promise.all(visitors.map((visitor) => ask("/billing/searches.csv", visitor)));
  const sessions = visitors.flatMap((visitor) => Array.from({ length: streamsOfSession }, () => visitor));
  const streams = await Promise.all(sessions.map((visitor) => ask("/billing/live", visitor)));
  return { downloads, streams };
}

const statusesOf = (connections: readonly Connection[]) =>
  connections.map(({ received }) => responsesIn(received)[0]?.status ?? 0);
const open = (statuses: readonly number[]) => statuses.filter((status) => status === 200).length;

function judgeBounds({ downloads, streams }: Opened): Finding {
  const [exported, followed] = [statusesOf(downloads), statusesOf(streams)];
  const isRefused = [...exported, ...followed].every((status) => [200, 429, 503].includes(status));
  return {
    promised: `at most ${downloadsMax} exports and ${streamsMax} streams are open in a process, and any more are refused`,
    seen: `exports: ${tally(exported)}; streams: ${tally(followed)}`,
    held: open(exported) <= downloadsMax && open(followed) <= streamsMax && isRefused,
  };
}

const judgeViews = (views: readonly number[]): Finding => ({
  promised: "another organization's page still loads",
  seen: tally(views),
  held: views.length > 0 && views.every((status) => status === 200),
});

/** Whether the slots of the exports become free after their timeout. */
async function judgeEnd(
  { api }: AttackStack,
  [first]: readonly PageVisitor[],
  { downloads, streams }: Opened,
): Promise<Finding> {
  if (!first) throw new Error("there is no page");
  const leave = (connections: readonly Connection[]) => connections.forEach((connection) => connection.reset());
  const beganAtMs = performance.now();
  const canExport = await becomes(async () => {
    await sleep(pageEveryMs * 10);
    return (await first.get("/billing/searches.csv")).status === 200;
  }, endedMsMax);
  const tookMs = performance.now() - beganAtMs;
  leave([...downloads, ...streams]);
  const areGone = await becomes(async () => (await Exposition.of(api)).value("live_streams_open") === 0, boundMs);
  return {
    promised: `unread exports end within ${endedMsMax / 1_000} s, and streams end with their page`,
    seen: `${canExport ? "ended" : "open"} after ${(tookMs / 1_000).toFixed(0)} s; streams ${areGone ? "gone" : "left open"}`,
    held: canExport && areGone,
  };
}
