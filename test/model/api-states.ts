import { Caller, type Search } from "./state.ts";

/**
 * The states of the API process of one search. In each it waits for one answer from outside, or for one message to be sent.
 *
 *   idle → admit → enqueue → wait → deliver → confirm → done        an answer, delivered and confirmed
 *   admit → seedRead → seedWrite → admit                            Redis has no balance
 *   admit → askKey, askBalance → seedWrite or admit                    Redis has too little
 *   admit → keyWait → deliver, admit                                another request under the key runs
 *   wait → refund → refundDrop → lateWait → deliver, reverse        the wait timed out
 *   wait, admit, enqueue → undo → undoDrop → reverse                the caller disconnected, or an outcome is unknown
 */
export const Api = {
  idle: 0,
  admit: 1,
  seedRead: 2,
  seedWrite: 3,
  askKey: 4,
  askBalance: 5,
  enqueue: 6,
  wait: 7,
  keyWait: 8,
  // The wait timed out, and the caller still waits for the outcome.
  refund: 9,
  refundDrop: 10,
  lateWait: 11,
  // The caller has its error, or disconnected.
  undo: 12,
  undoDrop: 13,
  // The refund took longer than a second: it goes on, and its outcome is no longer used.
  leftRefund: 14,
  leftDrop: 15,
  deliver: 16,
  confirm: 17,
  reverse: 18,
  reversePush: 19,
  // Nothing left to do. A process that died is the same from then on.
  done: 20,
} as const;

/** Whether the API reads its inbox for this search: from before the job exists until the caller has its outcome. */
export const isListening = (api: number) =>
  (api >= Api.enqueue && api <= Api.wait) || (api >= Api.refund && api <= Api.lateWait);

/** The API goes on: what it carried is used up, and an inbox that it no longer reads counts as empty. */
export function go(search: Search, api: number): void {
  search.api = api;
  search.carriedBalance = search.carriedVersion = 0;
  if (!isListening(api)) search.inbox = 0;
}

/** The API goes on and carries a balance. */
export function carry(search: Search, api: number, balance: number, version: number): void {
  go(search, api);
  search.carriedBalance = balance;
  search.carriedVersion = version;
}

/** Sends the caller its outcome, if it is still connected. */
export function answer(search: Search, outcome: number): void {
  if (search.caller === Caller.waits) search.caller = outcome;
}

/** Sends the caller an error, and nothing is left to do. */
export function refuse(search: Search): void {
  answer(search, Caller.refused);
  go(search, Api.done);
}
