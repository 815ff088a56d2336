import type { Credit } from "./postgres.ts";
import { Caller, type Search } from "./state.ts";

/**
 * The states of the API process of one search. In each it waits for one reply, or for one message to be sent.
 *
 *   idle → lookUp → admit → enqueue → wait → deliver → send → confirm → done   an answer, delivered and confirmed
 *   lookUp → deliver                                                the key has paid before; only searches with a key look
 *   admit → seedRead → seedWrite → admit                            Redis has no balance
 *   admit → listHolds, askBalance → seedWrite, freeHolds → admit    Redis has too little
 *   admit → checkHold → undo                                        whether there is a hold is unknown
 *   admit → keyWait → lookUp                                        another request under the key runs, or has run
 *   wait → refund → refundDrop → lateWait → deliver, reverse        the wait timed out
 *   wait → tell → disconnect → disconnectEnd → reverse                    the caller disconnected, a worker has the job
 *   wait, checkHold, enqueue → undo → undoDrop → reverse            the job was removed, or an outcome is unknown
 */
export const Api = {
  idle: 0,
  lookUp: 1,
  admit: 2,
  seedRead: 3,
  seedWrite: 4,
  listHolds: 5,
  askBalance: 6,
  freeHolds: 7,
  enqueue: 8,
  wait: 9,
  keyWait: 10,
  // The wait timed out, and the caller still waits for the outcome.
  refund: 11,
  refundDrop: 12,
  lateWait: 13,
  // The caller has its error, or disconnected.
  checkHold: 14,
  undo: 15,
  undoDrop: 16,
  tell: 17,
  disconnect: 18,
  disconnectEnd: 19,
  // The refund took longer than a second: it goes on, and its outcome is no longer used.
  leftRefund: 20,
  leftDrop: 21,
  // From `send` on, bytes of the answer are handed to the caller's socket; from `confirm` on, a usable copy was.
  deliver: 22,
  send: 23,
  confirm: 24,
  reverse: 25,
  reversePush: 26,
  // Nothing is left to do. A dead process has the same state.
  done: 27,
} as const;

/** Whether the API reads its inbox for this search: from before the job exists until the caller has its outcome. */
export const isListening = (api: number) =>
  (api >= Api.enqueue && api <= Api.wait) || (api >= Api.refund && api <= Api.lateWait);

/** Goes to a state. The API drops what it carried, and an inbox that it no longer reads counts as empty. */
export function go(search: Search, api: number): void {
  search.api = api;
  search.carriedBalance = search.carriedVersion = search.carriedSpent = search.seenHolds = 0;
  if (!isListening(api)) search.inbox = 0;
}

/** Goes to a state and carries a balance. */
export function carry(search: Search, api: number, { balance, version, spent }: Credit): void {
  go(search, api);
  search.carriedBalance = balance;
  search.carriedVersion = version;
  search.carriedSpent = spent;
}

/** What the API carries. */
export const carriedBy = (search: Search): Credit => ({
  balance: search.carriedBalance,
  version: search.carriedVersion,
  spent: search.carriedSpent,
});

/** Sends the caller its outcome, if it is still connected. */
export function answer(search: Search, outcome: number): void {
  if (search.caller === Caller.waits) search.caller = outcome;
}

/** Sends the caller an error and ends. */
export function refuse(search: Search): void {
  answer(search, Caller.refused);
  go(search, Api.done);
}
