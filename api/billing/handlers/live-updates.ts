import { setTimeout as sleep } from "node:timers/promises";
import type { Request, Response } from "express";
import { CallerError } from "../../../shared/errors.ts";
import type { ApiContext } from "../../context.ts";
import { setRateLimitHeaders } from "../../http/rate-limit-headers.ts";
import { type Credit, readAccount, readCredit, type View } from "../reads/load-account.ts";
import type { Billing } from "../billing.ts";
import { creditSection } from "../views/credit-section.ts";
import { historySection } from "../views/history-section.ts";
import type { Html } from "../views/html.ts";
import { setPageHeaders } from "../send-page.ts";
import { callerOf, isOpen, type Session } from "../session/sessions.ts";
import { readView } from "./billing-page.ts";
import { readSignedIn } from "../session/require-session.ts";
import { usageSection } from "../views/usage-section.ts";

/**
 * Live updates: a stream of events (text/event-stream) that carries the parts of the page that changed, as they are written
 * for the page itself. Opening one takes a request of the organization's window; what it sends takes none.
 */

const lookEveryMs = 1_000;
const streamMsMax = 10 * 60_000;
const comeBackAfterMs = 3_000;
const sessionStreamsMax = 5;
const organizationStreamsMax = 20;
const processStreamsMax = 100;
const retryAfterMs = 30_000;
const over = "event: over\ndata:\n\n";

/** GET /billing/live: parts as they change, until the page is closed, the session ends, or this process stops. */
export function handleLiveUpdates(billing: Billing) {
  const { context, streams } = billing;
  return async (request: Request, response: Response) => {
    // A page that is merely open is no activity: a session that nobody uses ends in front of it.
    const signedIn = await readSignedIn(context, request, response, "idle");
    if (!signedIn) {
      // As pages hear of it that never left: to a page that comes back, a refusal looks like a service that is away.
      begin(billing, request, response);
      response.end(over);
      return;
    }
    const { session, caller } = signedIn;
    const view = readView(request);
    const leave = streams.enter(session, caller.organizationId);
    try {
      const { window } = await readCredit(context, caller);
      setRateLimitHeaders(response, caller.plan, window);
      begin(billing, request, response);
      response.write(`retry: ${comeBackAfterMs}\n\n`);
      await follow(billing, session, view, response);
      response.end();
    } finally {
      leave();
    }
  };
}

function begin(billing: Billing, request: Request, response: Response): void {
  setPageHeaders(billing, request, response);
  response.writeHead(200, { "Content-Type": "text/event-stream", "X-Accel-Buffering": "no", Connection: "close" });
}

/** Sends what has changed since the last look; first of all everything, since the page may have aged on its way. */
async function follow(billing: Billing, session: Session, view: View, response: Response): Promise<void> {
  const { context } = billing;
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  const ended = AbortSignal.any([gone.signal, context.draining, AbortSignal.timeout(streamMsMax)]);
  let shown: { version: number; credit: string } | undefined;
  // Who hung up while the stream was opened is heard of no more.
  while (!ended.aborted && !response.closed) {
    const caller = (await isOpen(context, session)) ? await callerOf(context, session) : undefined;
    if (!caller) return void response.write(over);
    const credit = await readCredit(context, caller, true);
    const { version } = credit.state;
    const now = creditSection(credit).toString();
    // A reader that is slower than the changes skips some of them.
    if (!response.writableNeedDrain) {
      if (shown?.version !== version) await sendRest(billing, credit, view, response);
      if (shown?.credit !== now) sendPart(response, "credit", now);
      shown = { version, credit: now };
    }
    await sleep(lookEveryMs, undefined, { signal: ended }).catch(() => undefined);
  }
}

async function sendRest(billing: Billing, credit: Credit, view: View, response: Response): Promise<void> {
  const { context, streams } = billing;
  const { days, history } = await streams.inTurn(() => readAccount(context, credit, view));
  sendPart(response, "usage", usageSection(days));
  // Somebody who reads an older page keeps it.
  if (view.before === undefined) sendPart(response, "history", historySection(history));
}

function sendPart(response: Response, id: string, part: Html | string): void {
  response.write(`event: part\ndata: ${JSON.stringify({ id, html: part.toString() })}\n\n`);
}

/** Counts the streams that are open, so that nobody can have more than there are people in front of them. */
export class LiveStreams {
  readonly #metrics: ApiContext["metrics"];
  readonly #open = new Map<string, number>();
  #turn: Promise<unknown> = Promise.resolve();

  constructor({ metrics }: ApiContext) {
    this.#metrics = metrics;
    metrics.liveStreams.set(0);
  }

  /** @returns what ends the place. @throws {CallerError} `rate_limited` where there are too many. */
  enter(session: Session, organizationId: string): () => void {
    const bounds = new Map([
      [session.idHash, sessionStreamsMax],
      [organizationId, organizationStreamsMax],
      ["all", processStreamsMax],
    ]);
    for (const [of, max] of bounds) {
      if ((this.#open.get(of) ?? 0) >= max)
        throw new CallerError("rate_limited", { reason: "live_streams", limit: max, retryAfterMs });
    }
    for (const of of bounds.keys()) this.#add(of, 1);
    return () => {
      for (const of of bounds.keys()) this.#add(of, -1);
    };
  }

  /** Runs one read of the ledger after the other: however many pages are open, searches find a free connection. */
  inTurn<T>(read: () => Promise<T>): Promise<T> {
    const mine = this.#turn.then(read);
    this.#turn = mine.catch(() => undefined);
    return mine;
  }

  #add(of: string, change: number): void {
    const open = (this.#open.get(of) ?? 0) + change;
    if (open > 0) this.#open.set(of, open);
    else this.#open.delete(of);
    if (of === "all") this.#metrics.liveStreams.set(open);
  }
}
