/**
 * One state of the model: everything that Postgres, Redis and the processes have at one moment. It is a row of bytes, so that
 * millions of states fit in memory and are compared word by word.
 */

/** Fields that exist once. */
const sharedFields = [
  // Postgres: the organization's row, the search that paid under the key (+ 1), whether its answer is stored, and whether a
  // search was ever decided twice.
  "balance",
  "version",
  "granted",
  "paidBy",
  "stored",
  "decidedTwice",
  // Redis: the copy of the balance (+ 1, 0 where there is none) and of what was spent by that version (+ 1, 0 where that is
  // unknown), the key's record and the search that owns it (+ 1).
  "copy",
  "copyVersion",
  "copySpent",
  "record",
  "recordOwner",
  // The same in a snapshot on disk.
  "snapshot",
  "snapshotCopy",
  "snapshotCopyVersion",
  "snapshotCopySpent",
  "snapshotRecord",
  "snapshotRecordOwner",
  // A message that arrives late: for which search (+ 1), of which kind, with which balance and spending.
  "lateTo",
  "lateKind",
  "lateBalance",
  "lateVersion",
  "lateSpent",
  // Whether Redis ever lost data, and whether the maintenance has yet to notice a restart of Redis.
  "lost",
  "newRun",
] as const;

/** Fields of each search. Its API process serves only this search. */
const searchFields = [
  // Postgres.
  "decision",
  "reversed",
  "undelivered",
  // Redis: its hold, how often its calls count as unpaid, its job, how often the job was taken over, and the first unread
  // answer in the inbox of its API.
  "hold",
  "unpaid",
  "job",
  "takeOvers",
  "inbox",
  "snapshotHold",
  "snapshotJob",
  "snapshotTakeOvers",
  // The API: its state, the balance and the spending that it carries, the holds that it saw before a 402 (a bit each), and
  // what the caller got.
  "api",
  "carriedBalance",
  "carriedVersion",
  "carriedSpent",
  "seenHolds",
  "caller",
  // For the invariants: whether it ever had a hold, and whether its key had paid before it was sent.
  "wasHeld",
  "isRepeat",
  // How late it is for this search, and whether it is in doubt: delivered, and its API died before the confirmation.
  "clock",
  "inDoubt",
  // The sweeper, between its decision and its message.
  "sweep",
  "sweepBalance",
  "sweepVersion",
  "sweepSpent",
  // An API that cancels the search under its key, and the balance that it carries.
  "cancel",
  "cancelBalance",
  "cancelVersion",
  "cancelSpent",
] as const;

/** Fields of each run of a search's job. */
const runFields = ["at", "outcome", "isTold", "carriedBalance", "carriedVersion", "carriedSpent"] as const;

export const faults = [
  "apiCrash",
  "apiExit",
  "apiPause",
  "workerCrash",
  "workerStall",
  "workerGivesUp",
  "engineFailure",
  "disconnect",
  "cancel",
  "keyedCancel",
  "slowReader",
  "message",
  "inboxLost",
  "unknownCommit",
  "enqueueUnknown",
  "admissionUnknown",
  "flush",
  "snapshot",
  "restore",
  "postgresAway",
  "topUp",
] as const;
export type Fault = (typeof faults)[number];

type Fields<Names extends readonly string[]> = Record<Names[number], number>;
export type Search = Fields<typeof searchFields> & { index: number; runs: Run[] };
export type Run = Fields<typeof runFields> & { index: number };

/** `callerDisconnected` is a refund with that reason. */
export const Decision = {
  none: 0,
  charge: 1,
  refund: 2,
  alreadyPaid: 3,
  outOfCredits: 4,
  callerDisconnected: 5,
  overLimit: 6,
} as const;
/** A reversal counts as unpaid only if its caller disconnected. */
export const Reversed = { no: 0, yes: 1, callerDisconnected: 2 } as const;
/** A slot is a hold of 0 mils: the search still counts as one in flight. */
export const Hold = { none: 0, slot: 1, priced: 2 } as const;
/** From `active` on, the run `job - active` holds the job. */
export const Job = { none: 0, waiting: 1, active: 2 } as const;
/** Under a key the answer is the one in Postgres; any other bytes are `otherAnswer`. */
export const Inbox = { none: 0, answer: 1, failure: 2, failureOfCharge: 3, otherAnswer: 4 } as const;
export const KeyRecord = { none: 0, running: 1, answered: 2, failed: 3 } as const;
/** Where a run of a job is. */
export const At = {
  none: 0,
  engine: 1,
  charge: 2,
  refund: 3,
  failed: 4,
  settle: 5,
  reply: 6,
  giveBack: 7,
  ack: 8,
  // A call for a further page is under way.
  page: 9,
} as const;

/** Whether a call of the provider is under way. */
export const isAsking = ({ at }: Pick<Run, "at">) => at === At.engine || at === At.page;

/** `delivered`: a usable copy of the answer was handed to the caller's socket. */
export const Caller = { unsent: 0, waits: 1, disconnected: 2, delivered: 3, refused: 4, deliveredOther: 5 } as const;
/** After the grace the sweeper acts; after the fence no 200 is started. */
export const Clock = { early: 0, deadline: 1, grace: 2, fence: 3 } as const;

export class State {
  readonly words: Uint32Array;
  readonly shared: Fields<typeof sharedFields>;
  readonly left: Fields<typeof faults>;
  readonly searches: Search[];

  /** @param runsMax how many runs a job may have at the same time, living or frozen. */
  constructor(searches: number, runsMax: number) {
    const runBytes = runFields.length * runsMax;
    const ownBytes = searchFields.length + runBytes;
    const sharedBytes = sharedFields.length + faults.length;
    this.words = new Uint32Array(Math.ceil((sharedBytes + searches * ownBytes) / 4));
    const bytes = new Uint8Array(this.words.buffer);
    this.shared = openShared(bytes, 0);
    this.left = openFaults(bytes, sharedFields.length);
    this.searches = Array.from({ length: searches }, (_, index) => {
      const from = sharedBytes + index * ownBytes;
      const runs = Array.from({ length: runsMax }, (_run, slot) =>
        Object.assign(openRun(bytes, from + searchFields.length + slot * runFields.length), { index: slot }),
      );
      return Object.assign(openSearch(bytes, from), { index, runs });
    });
  }

  search(index: number): Search {
    return this.searches[index] ?? missing();
  }
}

function missing(): never {
  throw new RangeError("there is no such search or run in this model");
}

export function runOf(search: Search, slot: number): Run {
  return search.runs[slot] ?? missing();
}

const openShared = viewer(sharedFields);
const openFaults = viewer(faults);
const openSearch = viewer(searchFields);
const openRun = viewer(runFields);

/** Reads and writes bytes by name. All views of a kind share their accessors, which keeps them fast. */
function viewer<const Names extends readonly string[]>(names: Names) {
  class View {
    readonly bytes: Uint8Array;
    readonly from: number;
    constructor(bytes: Uint8Array, from: number) {
      this.bytes = bytes;
      this.from = from;
    }
  }
  for (const [at, name] of names.entries())
    Object.defineProperty(View.prototype, name, {
      get(this: View) {
        return this.bytes[this.from + at];
      },
      set(this: View, value: number) {
        this.bytes[this.from + at] = value;
      },
    });
  // The compiler cannot see the accessors that were just defined under exactly these names.
  return (bytes: Uint8Array, from: number) => new View(bytes, from) as unknown as Fields<Names>;
}
