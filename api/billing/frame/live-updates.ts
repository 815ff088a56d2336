import { setTimeout as sleep } from "node:timers/promises";
import type { Request, Response } from "express";
import type { Redis } from "ioredis";
import { Semaphore } from "../../../shared/concurrency/semaphore.ts";
import { CallerError } from "../../../shared/errors.ts";
import type { Metrics } from "../../../shared/metrics.ts";
import { takePageRequest } from "../session/counted-window.ts";
import { readSignedIn, type Session, type Sessions } from "../session/sessions.ts";
import { orPostgresUnavailable } from "../../datastore-unavailable.ts";
import type { Html } from "../../pages/html.ts";
import type { PageSender } from "../../pages/page-sender.ts";
import type { AccountCredit, ReadCredit } from "../../read-usage.ts";

/**
 * Live updates: an event stream with the sections of the page that changed. Opening a stream takes one request of the organization's
 * page window; updates take none.
 */

const pollMs = 1_000;
const streamMsMax = 10 * 60_000;
const reconnectAfterMs = 3_000;
/** The event that tells an open page that its session has ended. */
const sessionOver = "event: over\ndata:\n\n";

/** A section of an open page, by the id of its element. */
interface LiveSection {
  id: string;
  html: Html;
}

/** The sections of one page that change while it is open. */
export interface LiveSections {
  /** Sections that show the credit. They are sent if they differ from those of the last poll. */
  ofCredit: (credit: AccountCredit) => LiveSection[];
  /**
   * Sections that show the history. They are read before those of the credit, when the history has a new entry. One poll later they
   * are read again, because the search log is written a moment after the charge. They are sent if they differ.
   */
  ofLedger: (credit: AccountCredit) => Promise<LiveSection[]>;
}

interface LiveUpdateParts {
  sessions: Sessions;
  redis: Redis;
  readCredit: ReadCredit;
  pages: PageSender;
  streams: LiveStreams;
  /** Aborted when the process shuts down. */
  draining: AbortSignal;
}

/** Streams the changed sections of a page until the page closes, the session ends, the process shuts down, or ten minutes have passed. */
export function handleLiveUpdates(
  parts: LiveUpdateParts,
  openSections: (request: Request, response: Response) => LiveSections,
) {
  const { sessions, redis, pages, streams } = parts;
  const begin = (response: Response) => {
    pages.setHeaders(response);
    response.writeHead(200, { "Content-Type": "text/event-stream", "X-Accel-Buffering": "no", Connection: "close" });
  };
  return async (request: Request, response: Response) => {
    // An open page is no activity, so the session still times out.
    const signedIn = await readSignedIn(sessions, request, response, { presence: "idle" });
    if (signedIn instanceof CallerError) {
      // An event, not a 401: a page that reconnects would take a refusal for a service that is down.
      begin(response);
      response.end(sessionOver);
      return;
    }
    const { session, caller } = signedIn;
    const sections = openSections(request, response);
    const leave = streams.enter(session.idHash, caller.organizationId);
    try {
      await takePageRequest(redis, caller);
      begin(response);
      response.write(`retry: ${reconnectAfterMs}\n\n`);
      await sendUpdates(parts, session, sections, response);
      response.end();
    } finally {
      leave();
    }
  };
}

/** Sends what changed since the last poll. The first poll sends every section, because the page may already be outdated. */
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
  // If the browser disconnected while the stream opened, "close" was emitted before.
  while (!ended.aborted && !response.closed) {
    const caller = (await sessions.isOpen(session)) ? await sessions.callerOf(session, response) : undefined;
    if (!caller || caller instanceof CallerError) return void response.write(sessionOver);
    const credit = await readCredit(caller);
    // A browser that reads more slowly than the account changes misses some updates.
    if (!response.writableNeedDrain) {
      // A search that begins changes the window; one that ends leaves the searches in flight, charged or not.
      const { version, searchesInFlight } = credit.state;
      const newest = `${version} ${searchesInFlight} ${credit.window.used}`;
      const isAgain = sent?.newest === newest;
      let ofLedger = sent?.ofLedger ?? "";
      if (!isAgain || sent?.isAgain === false) {
        const read = () => orPostgresUnavailable(sections.ofLedger(credit));
        ofLedger = (await streams.read(caller.organizationId, read)).map(eventOf).join("");
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
/** The rest is for organizations without a stream: five organizations with 20 each must not take all. */
const furtherStreamsMax = 50;
const retryAfterMs = 30_000;

const processKey = "process";

/**
 * Limits live-update streams per session, organization and process, and their load on Postgres. An open stream reads Redis every
 * second, so without limits a script could open enough of them to slow down searches.
 */
export class LiveStreams {
  readonly #gauge: Metrics["liveStreams"];
  readonly #open = new Map<string, number>();
  readonly #reads = new Semaphore();

  constructor({ liveStreams }: Pick<Metrics, "liveStreams">) {
    this.#gauge = liveStreams;
    liveStreams.set(0);
  }

  /** Counts a stream as open. @returns a function that counts it as closed. @throws {CallerError} `rate_limited` at a limit. */
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

  /** Runs one read of the ledger at a time, so that open pages leave connections for page views. Organizations take turns. */
  read<T>(organizationId: string, step: () => Promise<T>): Promise<T> {
    return this.#reads.run(step, organizationId);
  }

  #add(key: string, change: number): void {
    const open = (this.#open.get(key) ?? 0) + change;
    if (open > 0) this.#open.set(key, open);
    else this.#open.delete(key);
    if (key === processKey) this.#gauge.set(open);
  }
}
