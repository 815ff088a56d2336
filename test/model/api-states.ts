import { Caller, type Search } from "./state.ts";

/** Where the API process of one search can be: each is a wait for one answer from outside, or for one message to go out. */
export const Api = {
  idle: 0,
  admit: 1,
  seedRead: 2,
  seedWrite: 3,
  askKey: 4,
  askPair: 5,
  enqueue: 6,
  wait: 7,
  keyWait: 8,
  // The wait ran out, and the caller still waits for what comes of it (endLate).
  refund: 9,
  refundDrop: 10,
  lateWait: 11,
  // The caller is told already, or gone (undo).
  undo: 12,
  undoDrop: 13,
  // The refund took longer than a second: it goes on, but nobody looks at its outcome any more.
  leftRefund: 14,
  leftDrop: 15,
  deliver: 16,
  confirm: 17,
  reverse: 18,
  reversePush: 19,
  // Nothing left to do; a process that died is the same from then on.
  done: 20,
} as const;

/** Whether the inbox is listened to for this search: from before its job exists until its caller is told. */
export const isListening = (api: number) =>
  (api >= Api.enqueue && api <= Api.wait) || (api >= Api.refund && api <= Api.lateWait);

/** The API goes on: what it carried is used up, and an inbox that nobody listens to any more is as good as empty. */
export function go(search: Search, api: number): void {
  search.api = api;
  search.pairBalance = search.pairVersion = 0;
  if (!isListening(api)) search.inbox = 0;
}

/** The API goes on with a pair in its hands. */
export function carry(search: Search, api: number, balance: number, version: number): void {
  go(search, api);
  search.pairBalance = balance;
  search.pairVersion = version;
}

/** The caller, if still there, is told. */
export function tell(search: Search, told: number): void {
  if (search.caller === Caller.waits) search.caller = told;
}

/** The caller is told an error, and nothing is left to do. */
export function refuse(search: Search): void {
  tell(search, Caller.refused);
  go(search, Api.done);
}
