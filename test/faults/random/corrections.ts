import { retryWhile } from "../../../shared/concurrency/retry.ts";
import { type BalanceChange, correctCredit, creditRefusal } from "../../../shared/credits/ledger.ts";
import { storeBalance } from "../../../shared/credits/stored-balances.ts";
import { newId } from "../../../shared/ids.ts";
import type { Service } from "../../harness/processes/service.ts";
import type { SentCorrection } from "../audit/corrections.ts";

const retryPauseMs = 200;

/** Corrects balances as an operator does, and records which corrections were made. */
export class Corrections {
  readonly sent: SentCorrection[] = [];
  readonly #service: Service;

  constructor(service: Service) {
    this.#service = service;
  }

  /** Sends a correction several times at once under one id. Each copy is retried until it is answered. */
  async correct(organizationId: string, mils: number, copies: number): Promise<void> {
    const correctionId = newId("correction");
    const sent: SentCorrection = { organizationId, correctionId, mils, made: 0, isMade: false };
    this.sent.push(sent);
    const send = () => this.#send(sent, { organizationId, grantId: correctionId, mils, reason: "mistake" });
    await Promise.all(Array.from({ length: copies }, send));
  }

  /** The most that corrections may have added: they count from the moment they are sent. */
  addedMilsMaxOf(organizationId: string): number {
    const own = this.sent.filter((one) => one.organizationId === organizationId);
    return own.reduce((sum, { mils }) => sum + Math.max(0, mils), 0);
  }

  async #send(sent: SentCorrection, correction: BalanceChange): Promise<void> {
    const { database, redis } = this.#service;
    const mayRetry = (error: unknown) => creditRefusal("correction", error) === undefined;
    try {
      const corrected = await retryWhile({ pauseMs: retryPauseMs, mayRetry }, () =>
        correctCredit(database, correction),
      );
      if (!corrected) throw new Error(`there is no ${correction.organizationId}`);
      sent.isMade = true;
      if (corrected.fresh) sent.made += 1;
      // Best effort, as in the command. The reconciler repairs the copy otherwise.
      await storeBalance(redis, correction.organizationId, corrected).catch(() => undefined);
    } catch (error) {
      if (mayRetry(error)) throw error;
    }
  }
}
