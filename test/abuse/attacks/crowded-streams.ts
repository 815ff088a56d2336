import { tally } from "../../faults/scenarios/statistics.ts";
import { type PageVisitor, signIn } from "../../harness/clients/page-visitor.ts";
import type { Attack, Strength } from "../attack.ts";
import type { AttackStack } from "../attack-stack.ts";

const crowd = 5;
const sessions = 4;
const streamsOfSession = 5;
// Half of the streams of a process, and one more for each organization.
const crowdMax = 50 + crowd;
const others: Record<Strength, number> = { quick: 5, full: 45 };

/** A few organizations together request all streams of a process. */
export const crowdedStreams: Attack = {
  name: "crowded-streams",
  tried: `${sessions * streamsOfSession} streams of live updates each by ${crowd} organizations, before the pages of up to ${others.full} others`,
  run: async (stack, strength) => {
    const leaving = new AbortController();
    const ofCrowd = { organizations: crowd, sessions, streams: streamsOfSession };
    const streams = await follow(stack, ofCrowd, leaving.signal);
    const ofOthers = { organizations: others[strength], sessions: 1, streams: 1 };
    streams.push(...(await follow(stack, ofOthers, leaving.signal)));
    leaving.abort();
    const statuses = streams.map(({ status }) => status);
    const asked = crowd * sessions * streamsOfSession;
    const [crowded, served] = [statuses.slice(0, asked), statuses.slice(asked)];
    const open = crowded.filter((status) => status === 200).length;
    return [
      {
        promised: `the crowd has at most ${crowdMax} of them`,
        seen: tally(crowded),
        held: open <= crowdMax && crowded.every((status) => status === 200 || status === 429),
      },
      {
        promised: "each organization without a stream gets one",
        seen: tally(served),
        held: served.every((status) => status === 200),
      },
    ];
  },
};

type Stream = Awaited<ReturnType<PageVisitor["follow"]>>;

/** Opens streams for new organizations, all at the same time. They stay open until the signal. */
async function follow(
  stack: AttackStack,
  asked: { organizations: number; sessions: number; streams: number },
  signal: AbortSignal,
): Promise<Stream[]> {
  const followOne = async (): Promise<Stream[]> => {
    const opened: Stream[] = [];
    const { token } = await stack.service.organization();
    for (let session = 0; session < asked.sessions; session += 1) {
      const visitor = await signIn(stack.service, { token });
      for (let stream = 0; stream < asked.streams; stream += 1) opened.push(await visitor.follow(undefined, signal));
    }
    return opened;
  };
  return (await Promise.all(Array.from({ length: asked.organizations }, followOne))).flat();
}
