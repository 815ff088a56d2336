import type { Edge, Point, Step } from "./points.ts";

/**
 * Every crash point: process, step, edge, with and without an Idempotency-Key (and so with and without a retry by the
 * caller), at the first delivery of the job and at the second. Left out are only cases that cannot happen or equal another:
 *
 * - identity, seed, store, admit, enqueue, poll of an API at the second delivery without a key: the search is not repeated,
 *   and an API passes these steps once, before any worker.
 * - enqueue after, store after, arrive, confirm, respond after, at the second delivery by a retry: the first run got so far
 *   that the retry finds the search done, is answered from the key, or is not sent. The deaths of workers cover arrive,
 *   respond and confirm.
 * - arrive before: the read of the inbox was sent long before there is an answer, and it changes nothing. It lies between the
 *   worker's "answer after" and the API's "arrive after".
 * - amid, except for the 200: the other side receives all of any other message or nothing. A pipeline is cut at each of its
 *   commands instead.
 * - answer before: the answer is sent right after settle.lua, so it equals "drop after".
 * - look, and fetch, at the second delivery: they only read, so it equals the first.
 * - confirm, reverse, undelivered charges with a key: a charge under a key is never reversed.
 * - a disconnect with a key: it changes nothing.
 * - settle and drop of a late API at the second delivery: the retry waits for the first run, and with no worker for two
 *   deadlines it is refused before any step.
 * - finish after, at the second delivery: the job is removed, so there is none.
 * - the maintenance's reverse after, and its drop after, at the second delivery: the first leader has reversed the charge or
 *   dropped the hold, so the next one finds nothing to do.
 * - the reads of sweeper and reconciler: they change nothing, so they equal the "before" of the next step.
 */
export interface Case {
  name: string;
  plot: Plot;
  keyed: boolean;
  delivery: 1 | 2;
  /** Where the first API dies, and the second. */
  apis: readonly Point[];
  /** Where the first worker that gets there dies, and where the next one dies. */
  workers: readonly Point[];
  ends: End;
  deadlineMs: number;
}

/** What happens around the death. */
export type Plot =
  | "search" // nothing
  | "cold" // Redis has no copy of the balance
  | "late" // the workers are frozen from their call of the provider until the API has ended its wait
  | "charged late" // a worker died after its charge, and no other takes over before the API has ended its wait
  | "disconnect" // the caller disconnects during the provider's call
  | "charged disconnect" // the caller disconnects after a worker died after its charge
  | "repeat" // a second request under the key, at the other API, while the first runs
  | "stopping" // each worker gets SIGTERM while it waits for the provider
  | "no second answer" // the provider fails the second run's calls
  | "maintenance starts"; // Redis lost its copy of the balance, and both workers are new

/** The outcome for the caller. In doubt: the answer arrived and the charge was reversed. */
export type End = "answered" | "unanswered" | "in doubt";

// A take-over takes 5.5 s, and a stopping worker waits 10 s before it hands its jobs back. There may be two of either before the
// API stops waiting, the second while both workers restart. Cases without them use the short deadline.
const longMs = 60_000;
const shortMs = 4_000;

const beforeAndAfter = ["before", "after"] as const;
const point = (step: Step, edge: Edge): Point => ({ step, edge });
const bothOf = (...steps: Step[]) => steps.flatMap((step) => beforeAndAfter.map((edge) => point(step, edge)));
const charged = point("settle", "after");

function named(actor: string, { step, edge }: Point, how: string, part: Omit<Case, "name">): Case {
  const key = part.keyed ? "key" : "no key";
  const delivery = part.delivery === 1 ? "first delivery" : "second delivery";
  return { name: `${actor}:${step}:${edge}${how === "" ? "" : `:${how}`}, ${key}, ${delivery}`, ...part };
}

const kinds = [false, true];

function apiCases(): Case[] {
  const passed = [...bothOf("identity", "admit", "enqueue"), point("arrive", "after")];
  const responds = [...bothOf("respond"), point("respond", "amid")];
  const first = kinds.flatMap((keyed) => {
    const search = [...passed, ...responds, ...bothOf(keyed ? "look" : "confirm")];
    const part = { keyed, delivery: 1, workers: [], deadlineMs: shortMs } as const;
    return [
      ...search.map((at) => named("api", at, "", { ...part, plot: "search", apis: [at], ends: endOf(keyed, at) })),
      ...bothOf("seed", "store").map((at) =>
        named("api", at, "", { ...part, plot: "cold", apis: [at], ends: endOf(keyed, at) }),
      ),
    ];
  });
  const again = [...bothOf("identity", "admit"), point("enqueue", "before"), point("respond", "before")];
  const retried = [...again, point("respond", "amid")].map((at) =>
    named("api", at, "", { ...byRetry, plot: "search", apis: [at, at] }),
  );
  const cold = bothOf("seed", "store").filter(({ step, edge }) => step === "seed" || edge === "before");
  const reseeded = cold.map((at) => named("api", at, "", { ...byRetry, plot: "cold", apis: [at, at] }));
  const polled = bothOf("poll").map((at) =>
    named("api", at, "retry", { ...byRetry, plot: "search", apis: [point("enqueue", "before"), at] }),
  );
  const takenOver = kinds.flatMap((keyed) =>
    [point("arrive", "after"), ...responds, ...(keyed ? [] : bothOf("confirm"))].map((at) => {
      const part = { keyed, delivery: 2, workers: [charged], deadlineMs: longMs } as const;
      return named("api", at, "worker died", { ...part, plot: "search", apis: [at], ends: endOf(keyed, at) });
    }),
  );
  return [...first, ...retried, ...reseeded, ...polled, ...takenOver];
}

const byRetry = { keyed: true, delivery: 2, workers: [], deadlineMs: shortMs, ends: "answered" } as const;

/** The death of an API breaks its caller's connection, except at the last steps. */
function endOf(keyed: boolean, { step, edge }: Point): End {
  if (keyed || (step === "confirm" && edge === "after")) return "answered";
  return step === "confirm" || (step === "respond" && edge === "after") ? "in doubt" : "unanswered";
}

/** An API gives up a search: its deadline passed, or its caller disconnected. */
function undoCases(): Case[] {
  const lost = { keyed: false, delivery: 1, workers: [], deadlineMs: shortMs, ends: "unanswered" } as const;
  const late = kinds.flatMap((keyed) =>
    bothOf("settle", "drop").map((at) =>
      named("api", at, "late", { ...lost, keyed, plot: "late", apis: [at], ends: keyed ? "answered" : "unanswered" }),
    ),
  );
  const charges = { ...lost, delivery: 2, workers: [charged] } as const;
  return [
    ...late,
    ...bothOf("settle", "reverse", "drop").map((at) =>
      named("api", at, "charged, late", { ...charges, plot: "charged late", apis: [at] }),
    ),
    ...bothOf("remove", "announce", "settle", "drop").map((at) =>
      named("api", at, "disconnect", { ...lost, plot: "disconnect", apis: [at] }),
    ),
    // The worker that runs the disconnected search dies, and the next one ends the search without calling the provider.
    ...bothOf("settle", "drop", "finish")
      .filter(({ step, edge }) => step !== "finish" || edge === "before")
      .map((at) =>
        named("worker", at, "disconnect", { ...lost, plot: "disconnect", apis: [], workers: [at], deadlineMs: longMs }),
      ),
    ...bothOf("remove", "settle", "reverse", "drop").map((at) =>
      named("api", at, "charged, disconnect", {
        ...charges,
        plot: "charged disconnect",
        apis: [at],
        deadlineMs: longMs,
      }),
    ),
    ...bothOf("fetch").map((at) => named("api", at, "repeat", { ...byRetry, delivery: 1, plot: "repeat", apis: [at] })),
    ...bothOf("poll").flatMap((at) =>
      ([1, 2] as const).map((delivery) => {
        const apis = delivery === 1 ? [at] : [at, at];
        return named("api", at, "repeat", { ...byRetry, delivery, plot: "repeat", apis });
      }),
    ),
  ];
}

function workerCases(): Case[] {
  const isRemoved = ({ step, edge }: Point) => step === "finish" && edge === "after";
  const run = [
    point("take", "after"),
    ...bothOf("ask", "unlease", "settle", "drop"),
    point("answer", "after"),
    ...bothOf("finish"),
  ];
  const searches = kinds.flatMap((keyed) =>
    run.flatMap((at) =>
      ([1, 2] as const)
        .filter((delivery) => delivery === 1 || !isRemoved(at))
        .map((delivery) => {
          const part = { keyed, delivery, apis: [], ends: "answered", deadlineMs: longMs } as const;
          return named("worker", at, "", { ...part, plot: "search", workers: delivery === 1 ? [at] : [at, at] });
        }),
    ),
  );
  const stopping = kinds.flatMap((keyed) =>
    bothOf("release").flatMap((at) =>
      ([1, 2] as const).map((delivery) => {
        const part = { keyed, delivery, apis: [], ends: "answered", deadlineMs: longMs } as const;
        return named("worker", at, "", { ...part, plot: "stopping", workers: delivery === 1 ? [at] : [at, at] });
      }),
    ),
  );
  return [...searches, ...stopping];
}

/**
 * The second run of a charged search gets no answer. Without a key the API reverses the charge; under a key it owes the answer.
 */
function failingCases(): Case[] {
  const failing = { delivery: 2, plot: "no second answer", deadlineMs: longMs } as const;
  const run = [...bothOf("drop"), point("answer", "after")];
  const workers = kinds.flatMap((keyed) =>
    run.map((at) => {
      // The failure is sent only at the last of these points; before it a third run gets an answer.
      const ends = !keyed && at.step === "answer" ? "unanswered" : "answered";
      return named("worker", at, "provider fails", { ...failing, keyed, apis: [], workers: [charged, at], ends });
    }),
  );
  const reversing = bothOf("reverse", "drop").map((at) =>
    named("api", at, "provider fails", {
      ...failing,
      keyed: false,
      apis: [at],
      workers: [charged],
      ends: "unanswered",
    }),
  );
  return [...workers, ...reversing];
}

function maintenanceCases(): Case[] {
  const deliveries = [1, 2] as const;
  const isDone = ({ step, edge }: Point) => edge === "after" && (step === "reverse" || step === "drop");
  const deliveriesOf = (at: Point) => deliveries.filter((delivery) => delivery === 1 || !isDone(at));
  const swept = kinds.flatMap((keyed) =>
    bothOf("settle", "drop").flatMap((at) =>
      deliveriesOf(at).map((delivery) => {
        const part = { keyed, delivery, apis: [point("admit", "after")], deadlineMs: shortMs } as const;
        const workers = delivery === 1 ? [at] : [at, at];
        const ends = keyed ? "answered" : "unanswered";
        return named("maintenance", at, "swept", { ...part, plot: "search", workers, ends });
      }),
    ),
  );
  const reversed = bothOf("reverse", "store").flatMap((at) =>
    deliveriesOf(at).map((delivery) => {
      const apis = [point("respond", "before")];
      const part = { keyed: false, delivery, apis, deadlineMs: shortMs, ends: "unanswered" } as const;
      const workers = delivery === 1 ? [at] : [at, at];
      return named("maintenance", at, "undelivered", { ...part, plot: "search", workers });
    }),
  );
  const restarted = bothOf("store").flatMap((at) =>
    deliveries.map((delivery) => {
      const part = { keyed: false, delivery, apis: [], deadlineMs: shortMs, ends: "answered" } as const;
      const workers = delivery === 1 ? [at] : [at, at];
      return named("maintenance", at, "start", { ...part, plot: "maintenance starts", workers });
    }),
  );
  return [...swept, ...reversed, ...restarted];
}

export const cases: readonly Case[] = [
  ...apiCases(),
  ...undoCases(),
  ...workerCases(),
  ...failingCases(),
  ...maintenanceCases(),
];
