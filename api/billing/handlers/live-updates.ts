import { setTimeout as sleep } from "node:timers/promises";
import type { Request, Response } from "express";
import { CallerError } from "../../../shared/errors.ts";
import type { LiveStreams } from "../live-streams.ts";
import type { PageSender } from "../page-sender.ts";
import { type HistoryView, readHistoryView } from "../reads/history-view.ts";
import type { Account, AccountReads } from "../reads/load-account.ts";
import type { PageWindow } from "../session/page-window.ts";
import { readSignedIn } from "../session/require-session.ts";
import type { Session, Sessions } from "../session/sessions.ts";
import { creditSection } from "../views/credit-section.ts";
import { historySection } from "../views/history-section.ts";
import type { Html } from "../views/html.ts";
import { usageSection } from "../views/usage-section.ts";

/**
 * Live updates: a stream of events (text/event-stream) with the sections of the page that changed. Opening a stream takes one
 * request of the organization's page window; its updates take none.
 */

const pollMs = 1_000;
const streamMsMax = 10 * 60_000;
const reconnectAfterMs = 3_000;
/** The event that ends a session on the open page. */
const sessionOver = "event: over\ndata:\n\n";

interface LiveUpdateParts {
  sessions: Sessions;
  pageWindow: PageWindow;
  reads: AccountReads;
  pages: PageSender;
  streams: LiveStreams;
  /** Aborted when the process shuts down. */
  draining: AbortSignal;
}

/**
 * GET /billing/live: sections as they change, until the page is closed, the session ends, the process shuts down, or ten
 * minutes are over and the page reconnects.
 */
export function handleLiveUpdates(parts: LiveUpdateParts) {
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
    const view = readHistoryView(request);
    const leave = streams.enter(session.idHash, caller.organizationId);
    try {
      await pageWindow.take(caller);
      begin(response);
      response.write(`retry: ${reconnectAfterMs}\n\n`);
      await sendUpdates(parts, session, view, response);
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
  view: HistoryView,
  response: Response,
): Promise<void> {
  const { sessions, reads, streams, draining } = parts;
  const closed = new AbortController();
  response.once("close", () => closed.abort());
  const ended = AbortSignal.any([closed.signal, draining, AbortSignal.timeout(streamMsMax)]);
  let sent: { version: number; credit: string } | undefined;
  // A browser that disconnected while the stream was opened emits no "close" any more.
  while (!ended.aborted && !response.closed) {
    const caller = (await sessions.isOpen(session)) ? await sessions.callerOf(session, response) : undefined;
    if (!caller || caller instanceof CallerError) return void response.write(sessionOver);
    const credit = await reads.readCredit(caller);
    const { version } = credit.state;
    const section = creditSection(credit).toString();
    // A browser that reads more slowly than the account changes skips some updates.
    if (!response.writableNeedDrain) {
      if (sent?.version !== version) {
        const account = await streams.reads.run(() => reads.readAccount(credit, view));
        sendLedgerSections(response, account);
      }
      if (sent?.credit !== section) sendSection(response, "credit", section);
      sent = { version, credit: section };
    }
    await sleep(pollMs, undefined, { signal: ended }).catch(() => undefined);
  }
}

function sendLedgerSections(response: Response, { days, history }: Account): void {
  sendSection(response, "usage", usageSection(days));
  // A person who reads an older page keeps it.
  if (history.view.before === undefined) sendSection(response, "history", historySection(history));
}

function sendSection(response: Response, id: string, section: Html | string): void {
  response.write(`event: part\ndata: ${JSON.stringify({ id, html: section.toString() })}\n\n`);
}
