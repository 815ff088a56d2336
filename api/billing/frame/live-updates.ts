import { setTimeout as sleep } from "node:timers/promises";
import type { Request, Response } from "express";
import { Turns } from "../../../shared/concurrency/turns.ts";
import { CallerError } from "../../../shared/errors.ts";
import type { Metrics } from "../../../shared/metrics.ts";
import type { Credit, ReadCredit } from "./credit.ts";
import type { PageWindow } from "../session/counted-window.ts";
import { readSignedIn, type Session, type Sessions } from "../session/sessions.ts";
import type { Html } from "../../pages/html.ts";
import type { PageSender } from "../../pages/page-sender.ts";

/**
 * Live updates: a stream of events (text/event-stream) with the sections of the page that changed. Opening a stream takes one
 * request of the organization's page window; its updates take none.
 */

const pollMs = 1_000;
const streamMsMax = 10 * 60_000;
const reconnectAfterMs = 3_000;
/** The event that ends a session on the open page. */
const sessionOver = "event: over\ndata:\n\n";

/** A section of an open page, by the id of its element. */
interface LiveSection {
  id: string;
  html: Html;
}

/** The sections of one page that change while it is open. */
export interface LiveSections {
  /** Sections that show the credit. They are sent when they differ from those of the poll before. */
  ofCredit: (credit: Credit) => LiveSection[];
  /**
   * Sections that show the history. They are read when it has a new entry, and once more after that, because what was searched is
   * written a moment later. They are sent when they differ, and are read before those of the credit.
   */
  ofLedger: (credit: Credit) => Promise<LiveSection[]>;
}

interface LiveUpdateParts {
  sessions: Sessions;
  pageWindow: PageWindow;
  readCredit: ReadCredit;
  pages: PageSender;
  streams: LiveStreams;
  /** Aborted when the process shuts down. */
  draining: AbortSignal;
}

/**
 * A page's stream: its sections as they change, until the page is closed, the session ends, the process shuts down, or ten
 * minutes are over and the page reconnects.
 */
export function handleLiveUpdates(parts: LiveUpdateParts, openSections: (request: Request) => LiveSections) {
  const { sessions, pageWindow, pages, streams } = parts;
  const begin = (response: Response) => {
    pages.setHeaders(response);
    response.writeHead(200, { "Content-Type": "text/event-stream", "X-Accel-Buffering": "no", Connection: "close" });
  };
  return async (request: Request, response: Response) => {
    // An open page does not count as activity: the session times out all the same.
    const signedIn = await readSignedIn(sessions, request, response, "idle");
    if (signedIn instanceof CallerError) {
      // As an event and not as a 401: a page that reconnects takes every refusal for a service that is down.
      begin(response);
      response.end(sessionOver);
      return;
    }
    const { session, caller } = signedIn;
    const sections = openSections(request);
    const leave = streams.enter(session.idHash, caller.organizationId);
    try {
      await pageWindow.take(caller);
      begin(response);
      response.write(`retry: ${reconnectAfterMs}\n\n`);
      await sendUpdates(parts, session, sections, response);
      response.end();
    } finally {
      leave();
    }
  };
}

/** Sends what changed since the last poll. The first poll sends every section: the page may be outdated on arrival. */
async function sendUpdates(
  parts: LiveUpdateParts,
  session: Session,
  sections: LiveSections,
  response: Response,
): Promise<void> {
  const { sessions, readCredit, streams, draining } = parts;
  const closed = new AbortController();
  response.once("close", () => closed.abort());
  const ended = AbortSignal.any([closed.signal, draining, AbortSignal.timeout(streamMsMax)]);
  let sent: { newest: string; ofCredit: string; ofLedger: string; isAgain: boolean } | undefined;
  // A browser that disconnected while the stream was opened emits no "close" any more.
  while (!ended.aborted && !response.closed) {
    const caller = (await sessions.isOpen(session)) ? await sessions.callerOf(session, response) : undefined;
    if (!caller || caller instanceof CallerError) return void response.write(sessionOver);
    const credit = await readCredit(caller);
    // A browser that reads more slowly than the account changes skips some updates.
    if (!response.writableNeedDrain) {
      // A search that begins counts in the window, one that ends is not in flight any more, charged or not.
      const { version, searchesInFlight } = credit.state;
      const newest = `${version} ${searchesInFlight} ${credit.window.used}`;
      const isAgain = sent?.newest === newest;
      let ofLedger = sent?.ofLedger ?? "";
      if (!isAgain || sent?.isAgain === false) {
        ofLedger = (await streams.reads.run(() => sections.ofLedger(credit))).map(eventOf).join("");
        if (sent?.ofLedger !== ofLedger) response.write(ofLedger);
      }
      const ofCredit = sections.ofCredit(credit).map(eventOf).join("");
      if (sent?.ofCredit !== ofCredit) response.write(ofCredit);
      sent = { newest, ofCredit, ofLedger, isAgain };
    }
    await sleep(pollMs, undefined, { signal: ended }).catch(() => undefined);
  }
}

const eventOf = ({ id, html }: LiveSection) =>
  `event: part\ndata: ${JSON.stringify({ id, html: html.toString() })}\n\n`;

const sessionStreamsMax = 5;
const organizationStreamsMax = 20;
const processStreamsMax = 100;
/** The other streams of a process are for organizations that have none, so that five with 20 each leave some to others. */
const furtherStreamsMax = 50;
const retryAfterMs = 30_000;

const processKey = "process";

/**
 * Limits live-update streams, per session, per organization and per process, and the load that they put on Postgres. An open
 * stream costs a read of Redis every second, so without limits a script could open enough of them to slow down searches.
 */
export class LiveStreams {
  readonly #gauge: Metrics["liveStreams"];
  readonly #open = new Map<string, number>();
  /** One read of the ledger at a time: however many pages are open, other people's pages find a free connection. */
  readonly reads = new Turns();

  constructor({ liveStreams }: Pick<Metrics, "liveStreams">) {
    this.#gauge = liveStreams;
    liveStreams.set(0);
  }

  /** Counts a stream as open. @returns what ends it. @throws {CallerError} `rate_limited` at one of the limits. */
  enter(sessionIdHash: string, organizationId: string): () => void {
    const isFirst = !this.#open.has(organizationId);
    const limits = new Map([
      [sessionIdHash, sessionStreamsMax],
      [organizationId, organizationStreamsMax],
      [processKey, isFirst ? processStreamsMax : furtherStreamsMax],
    ]);
    for (const [key, limit] of limits) {
      if ((this.#open.get(key) ?? 0) >= limit)
        throw new CallerError("rate_limited", { reason: "live_streams", limit, retryAfterMs });
    }
    for (const key of limits.keys()) this.#add(key, 1);
    return () => {
      for (const key of limits.keys()) this.#add(key, -1);
    };
  }

  #add(key: string, change: number): void {
    const open = (this.#open.get(key) ?? 0) + change;
    if (open > 0) this.#open.set(key, open);
    else this.#open.delete(key);
    if (key === processKey) this.#gauge.set(open);
  }
}
