import type { RateWindow } from "../../../shared/credits/admit.ts";
import type { CreditState } from "../../../shared/credits/holds.ts";
import type { Caller } from "../../../shared/organizations/organizations.ts";
import type { Clock } from "../../../shared/redis/clock.ts";
import { unavailable } from "../../errors.ts";
import type { ReadUsage } from "../../read-usage.ts";

/** An organization's credit at one moment. The numbers agree with each other, and with REST and MCP. */
export interface Credit {
  caller: Caller;
  availableMils: number;
  state: CreditState;
  window: RateWindow;
  windowEndsAt: Date;
}

/**
 * Reads an organization's credit and its rate window, without taking a request from the window.
 * @throws {CallerError} `unavailable` without Redis, which alone knows the holds.
 */
export type ReadCredit = (caller: Caller) => Promise<Credit>;

export function creditReader(readUsage: ReadUsage, clock: Clock): ReadCredit {
  return async (caller) => {
    const { creditBalanceMils, window, creditState: state } = await readUsage(caller, true);
    if (!window || !state) throw unavailable("redis_unreachable");
    // Rounded to whole seconds, so that two reads in one window show the same end.
    const endsAtMs = Math.round((clock.nowMs() + window.leftMs) / 1_000) * 1_000;
    return { caller, availableMils: creditBalanceMils, state, window, windowEndsAt: new Date(endsAtMs) };
  };
}
