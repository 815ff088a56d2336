import type { RateWindow } from "../../shared/credits/admit.ts";
import type { PayableCalls } from "../../shared/queue/replies.ts";
import type { SearchTrace } from "../../shared/queue/replies.ts";
import type { LogFields } from "../http/request-scope.ts";

/** The answer of a search, as it goes to the caller. */
export interface DeliverableAnswer {
  /** The request that the answer belongs to: this one, or the first one under its Idempotency-Key. */
  requestId: string;
  /** The whole response body, serialised by the worker. */
  body: Buffer;
  replayed: boolean;
  window: RateWindow;
  /** Mils charged by this very request; 0 for a replay, or if the key had paid before. */
  chargedMils: number;
  trace: SearchTrace | undefined;
  /** The provider calls that count as unpaid if the caller does not take the answer. */
  payable?: PayableCalls | undefined;
}

export function answerLogFields({ requestId, replayed, chargedMils, trace }: DeliverableAnswer): LogFields {
  return {
    outcome: replayed ? "replayed" : "answered",
    ...(replayed && { answerOf: requestId }),
    chargedMils,
    ...trace,
  };
}
