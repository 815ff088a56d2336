import type { ModelConfig } from "./steps.ts";

/**
 * Which searches are sent, and how often each fault may happen. The model explores every order of the steps of a scenario, and
 * every moment of each fault.
 */
export interface Scenario extends Omit<ModelConfig, "design"> {
  name: string;
}

const alone: Omit<Scenario, "name" | "faults"> = { keyed: [false], balance: 1, warm: true, takeOversMax: 1, pages: 1 };
const keyedAlone = { ...alone, keyed: [true] };
const two = { ...alone, keyed: [false, false] };
const twoUnderAKey = { ...alone, keyed: [true, true] };
const onALimit = { ...two, balance: 2, limit: 1 };
// If deadlines passed at any moment, there would be too many states to visit.
const inTime = { ...onALimit, isPunctual: true };
const threeOnALimitForTwo = { keyed: [false, false, false], balance: 3, limit: 2 };

const everyProcess = { apiCrash: 1, workerCrash: 1, workerStall: 1, disconnect: 1, engineFailure: 1 };
const everyMessage = { message: 2, inboxLost: 1, enqueueUnknown: 1, admissionUnknown: 1 };
const everyOutage = { unknownCommit: 2, postgresAway: 1, workerGivesUp: 1, apiCrash: 1, apiExit: 1, engineFailure: 1 };
const everyMemory = { flush: 1, restore: 1, topUp: 1, apiCrash: 1 };
// Faults that make Redis' count of the spending unknown or old.
const everyCount = { flush: 1, topUp: 1, message: 1 };

export const scenarios: Scenario[] = [
  { ...alone, name: "nothing goes wrong", faults: {} },
  { ...alone, name: "processes", faults: everyProcess },
  { ...keyedAlone, name: "processes, keyed", faults: everyProcess },
  { ...alone, name: "three runs", takeOversMax: 2, faults: { workerStall: 2, workerCrash: 1 } },
  { ...keyedAlone, name: "three runs, keyed", takeOversMax: 2, faults: { workerStall: 2, workerCrash: 1 } },
  { ...alone, name: "messages", faults: everyMessage },
  { ...keyedAlone, name: "messages, keyed", faults: everyMessage },
  { ...alone, name: "outages of Postgres", faults: everyOutage },
  { ...keyedAlone, name: "outages of Postgres, keyed", faults: everyOutage },
  { ...alone, name: "lost data", faults: everyMemory },
  { ...keyedAlone, name: "lost data, keyed", faults: everyMemory },
  { ...alone, name: "a disconnect", pages: 2, faults: { disconnect: 1, message: 1, engineFailure: 1, workerCrash: 1 } },
  {
    ...alone,
    name: "a cancel, a slow reader",
    faults: { cancel: 1, slowReader: 1, disconnect: 1, message: 1, apiCrash: 1 },
  },
  { ...keyedAlone, name: "a cancel under a key", pages: 2, faults: { keyedCancel: 2, message: 1, apiCrash: 1 } },
  { ...keyedAlone, name: "a cancel under a key, a worker dies", faults: { keyedCancel: 1, workerCrash: 1, flush: 1 } },
  { ...twoUnderAKey, name: "a cancelled search, a repeat", faults: { keyedCancel: 1 } },
  { ...alone, name: "a frozen API", faults: { apiPause: 1, disconnect: 1, message: 1, workerStall: 1, apiCrash: 1 } },
  { ...alone, name: "credits arrive late", balance: 0, warm: false, faults: { topUp: 2, message: 1, flush: 1 } },
  { ...two, name: "two for the last credit", faults: {} },
  { ...two, name: "two for the last credit, cold", warm: false, faults: {} },
  { ...two, name: "two with credit, cold", balance: 2, warm: false, faults: {} },
  { ...two, name: "two for the last credit, one disconnects", faults: { disconnect: 1 } },
  { ...twoUnderAKey, name: "a repeat", faults: {} },
  { ...twoUnderAKey, name: "a repeat, the API dies", faults: { apiCrash: 1 } },
  { ...twoUnderAKey, name: "a repeat, a message is lost", faults: { message: 1 } },
  { ...twoUnderAKey, name: "a repeat, Redis loses its data", faults: { flush: 1 } },
  { ...twoUnderAKey, name: "a repeat, the engine fails", faults: { engineFailure: 1, disconnect: 1 } },
  { ...twoUnderAKey, name: "a repeat, a worker dies", faults: { workerCrash: 1 } },
  { ...twoUnderAKey, name: "a repeat, a worker freezes", faults: { workerStall: 1 } },
  { ...alone, name: "a limit for nothing", limit: 0, faults: everyCount },
  { ...onALimit, name: "two on a limit for one", faults: {} },
  { ...inTime, name: "two on a limit for one, in time", faults: everyCount },
  {
    ...inTime,
    name: "two on a limit for one, in time, credit for one",
    balance: 1,
    faults: { ...everyCount, topUp: 2 },
  },
  {
    ...inTime,
    name: "two on a limit for one, in time, Redis is restored",
    faults: { restore: 1, message: 1, topUp: 1 },
  },
  { ...inTime, name: "two on a limit for one, in time, one is given back", faults: { ...everyCount, disconnect: 1 } },
  {
    ...inTime,
    name: "two on a limit for one, in time, a worker dies",
    faults: { flush: 1, workerCrash: 1, disconnect: 1 },
  },
  { ...inTime, name: "three on a limit for two, in time", ...threeOnALimitForTwo, faults: everyCount },
  { ...inTime, name: "one under a key, one without, on a limit for one", keyed: [true, false], faults: everyCount },
  { ...inTime, name: "a repeat on a limit for one", keyed: [true, true], faults: everyCount },
];
