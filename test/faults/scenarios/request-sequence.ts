import { randomUUID } from "node:crypto";
import { z } from "zod";
import { priceMils } from "../audit/evidence.ts";
import type { CallerAnswer } from "./callers.ts";
import type { ScenarioStack } from "./scenario-stack.ts";
import { poorMils, type SeededOrganization } from "./seed-organizations.ts";

/**
 * Sequences of requests of one organization, with a verdict on each answer. An organization has one sequence at a time, so its
 * true balance is known to the mil.
 */

/** One request of a sequence. */
export interface CheckedAnswer {
  what: "usage" | "search";
  answer: CallerAnswer;
  verdict: "right" | "refused" | "wrong";
  /** What the organization had, with this answer paid, and what its refused searches may hold. */
  known: Pick<SeededOrganization, "balanceMils" | "mayBeHeldMils">;
}

const usageBody = z.object({ creditBalanceMils: z.number() });
const answerBody = z.object({ creditsCharged: z.number(), creditsRemaining: z.number() });
const shortBody = z.object({
  error: z.object({ code: z.literal("out_of_credits"), details: z.object({ availableMils: z.literal(poorMils) }) }),
});

/** Sends the next kind of sequence, by the count. */
export async function sendSequence(
  stack: ScenarioStack,
  organization: SeededOrganization,
  count: number,
): Promise<CheckedAnswer[]> {
  const sequence = new RequestSequence(stack, organization, count);
  await kinds[count % kinds.length]?.(sequence);
  return sequence.checked;
}

/** The first sequence of an organization, before the loss: reads the balance; every fourth also pays under a key. */
export async function warmUp(
  stack: ScenarioStack,
  organization: SeededOrganization,
  count: number,
): Promise<CheckedAnswer[]> {
  const sequence = new RequestSequence(stack, organization, count);
  await sequence.usage();
  if (count % 4 === 0) await sequence.searchWithKey();
  return sequence.checked;
}

const kinds: ((sequence: RequestSequence) => Promise<void>)[] = [
  (sequence) => sequence.usage(),
  async (sequence) => {
    await sequence.search();
    await sequence.usage();
  },
  async (sequence) => {
    await sequence.searchWithKey();
    await sequence.repeat();
    await sequence.usage();
  },
  async (sequence) => {
    await sequence.repeat();
    await sequence.usage();
  },
];

class RequestSequence {
  readonly checked: CheckedAnswer[] = [];
  readonly #stack: ScenarioStack;
  readonly #organization: SeededOrganization;
  readonly #apiUrl: string;

  constructor(stack: ScenarioStack, organization: SeededOrganization, count: number) {
    this.#stack = stack;
    this.#organization = organization;
    // Out of step with the kinds, so that each API gets all of them.
    this.#apiUrl = stack.apiUrl(Math.floor(count / kinds.length));
  }

  async usage(): Promise<void> {
    const answer = await this.#stack.callers.usage(this.#apiUrl, this.#organization.token);
    const isRight = () => this.#isRight(usageBody.parse(JSON.parse(answer.text)).creditBalanceMils);
    this.#record("usage", answer, answer.status === 200 && isRight());
  }

  async search(): Promise<void> {
    this.#check(await this.#send(), priceMils);
  }

  /** A search under a new key. */
  async searchWithKey(): Promise<void> {
    const key = randomUUID();
    const answer = await this.#send(key);
    this.#check(answer, priceMils);
    if (answer.status === 200) this.#organization.paid = { key, text: answer.text };
  }

  /** Repeats a key that has paid. The answer has the same bytes, or is a new one that costs nothing. */
  async repeat(): Promise<void> {
    const { paid } = this.#organization;
    if (!paid) return this.search();
    const answer = await this.#send(paid.key);
    if (answer.status === 200 && answer.replayed) return this.#record("search", answer, answer.text === paid.text);
    this.#check(answer, 0);
    if (answer.status === 200) this.#organization.paid = { ...paid, text: answer.text };
  }

  #send(key?: string): Promise<CallerAnswer> {
    return this.#stack.callers.search(this.#apiUrl, this.#organization.token, "a sequence", key);
  }

  /** Checks the answer to a search with this price. */
  #check(answer: CallerAnswer, chargedMils: number): void {
    if (this.#organization.isPoor && answer.status !== 200) {
      const isRight = answer.status === 402 && shortBody.safeParse(JSON.parse(answer.text)).success;
      return this.#record("search", answer, isRight);
    }
    if (answer.status !== 200) return this.#record("search", answer, false);
    const body = answerBody.parse(JSON.parse(answer.text));
    this.#organization.balanceMils -= body.creditsCharged;
    const isRight = body.creditsCharged === chargedMils && this.#isRight(body.creditsRemaining);
    this.#record("search", answer, isRight && !this.#organization.isPoor);
  }

  /** Exact to the mil, apart from holds of refused searches that may not have ended yet. */
  #isRight(availableMils: number): boolean {
    const heldMils = this.#organization.balanceMils - availableMils;
    return heldMils >= 0 && heldMils <= this.#organization.mayBeHeldMils && heldMils % priceMils === 0;
  }

  #record(what: CheckedAnswer["what"], answer: CallerAnswer, isRight: boolean): void {
    const verdict = isRight ? "right" : answer.status === 503 ? "refused" : "wrong";
    const { balanceMils, mayBeHeldMils } = this.#organization;
    this.checked.push({ what, answer, verdict, known: { balanceMils, mayBeHeldMils } });
    // The hold ends after the caller got the refusal, maybe after the next sequence began.
    if (what === "search" && answer.status === 503) this.#organization.mayBeHeldMils += priceMils;
  }
}
