import { randomUUID } from "node:crypto";
import { z } from "zod";
import type { CallerAnswer } from "./callers.ts";
import { type SeededOrganization, poorMils, priceMils } from "./seed-organizations.ts";
import type { ScenarioStack } from "./scenario.ts";

/**
 * What members of a crowd ask, one after the other, and whether each answer is right: only one visitor is with a member
 * at a time, so what it truly has is known to the mil.
 */

/** One request of a visit. */
export interface Asked {
  what: "usage" | "search";
  told: CallerAnswer;
  verdict: "right" | "refused" | "wrong";
}

const usageBody = z.object({ creditBalanceMils: z.number() });
const answerBody = z.object({ creditsCharged: z.number(), creditsRemaining: z.number() });
const shortBody = z.object({
  error: z.object({ code: z.literal("out_of_credits"), details: z.object({ availableMils: z.literal(poorMils) }) }),
});

type Kind = (visit: RequestSequence) => Promise<void>;

/** Visits a member: which kind of visit it is goes in turn with the count. */
export async function sendSequence(scene: ScenarioStack, member: SeededOrganization, count: number): Promise<Asked[]> {
  const visiting = new RequestSequence(scene, member, count);
  const kind = kinds[count % kinds.length];
  await kind?.(visiting);
  return visiting.asked;
}

/** A member's first visit, while all is well: its balance is read, and some pay under a key. */
export async function warm(scene: ScenarioStack, member: SeededOrganization, count: number): Promise<Asked[]> {
  const visiting = new RequestSequence(scene, member, count);
  await visiting.usage();
  if (count % 4 === 0) await visiting.searchWithKey();
  return visiting.asked;
}

const kinds: Kind[] = [
  (visiting) => visiting.usage(),
  async (visiting) => {
    await visiting.search();
    await visiting.usage();
  },
  async (visiting) => {
    await visiting.searchWithKey();
    await visiting.repeat();
    await visiting.usage();
  },
  async (visiting) => {
    await visiting.repeat();
    await visiting.usage();
  },
];

class RequestSequence {
  readonly asked: Asked[] = [];
  readonly #scene: ScenarioStack;
  readonly #member: SeededOrganization;
  readonly #apiUrl: string;
  #mayBeHeldMils = 0;

  constructor(scene: ScenarioStack, member: SeededOrganization, count: number) {
    const { apis } = scene.service;
    this.#scene = scene;
    this.#member = member;
    // Not in step with the kinds, so that each API gets all of them.
    this.#apiUrl = apis[Math.floor(count / kinds.length) % apis.length]?.url ?? "";
  }

  async usage(): Promise<void> {
    const told = await this.#scene.callers.usage(this.#apiUrl, this.#member.token);
    const isRight = () => this.#isRight(usageBody.parse(JSON.parse(told.text)).creditBalanceMils);
    this.#note("usage", told, told.status === 200 && isRight());
  }

  async search(): Promise<void> {
    this.#judge(await this.#scene.callers.search(this.#apiUrl, this.#member.token, "a visit"), priceMils);
  }

  /** A search under a key of its own. */
  async searchWithKey(): Promise<void> {
    const key = randomUUID();
    const told = await this.#scene.callers.search(this.#apiUrl, this.#member.token, "a visit", key);
    this.#judge(told, priceMils);
    if (told.status === 200) this.#member.paid = { key, text: told.text };
  }

  /** The same again under a key that was paid: the same bytes; or searched anew, for nothing, and then the same bytes. */
  async repeat(): Promise<void> {
    const { paid, token } = this.#member;
    if (!paid) return this.search();
    const told = await this.#scene.callers.search(this.#apiUrl, token, "a visit", paid.key);
    if (told.status === 200 && told.replayed) return this.#note("search", told, told.text === paid.text);
    this.#judge(told, 0);
    if (told.status === 200) this.#member.paid = { ...paid, text: told.text };
  }

  /** A search that runs, for this price. */
  #judge(told: CallerAnswer, chargedMils: number): void {
    if (this.#member.isPoor && told.status !== 200) {
      const isRight = told.status === 402 && shortBody.safeParse(JSON.parse(told.text)).success;
      return this.#note("search", told, isRight);
    }
    if (told.status !== 200) return this.#note("search", told, false);
    const body = answerBody.parse(JSON.parse(told.text));
    this.#member.balanceMils -= body.creditsCharged;
    const isRight = body.creditsCharged === chargedMils && this.#isRight(body.creditsRemaining);
    this.#note("search", told, isRight && !this.#member.isPoor);
  }

  /** To the mil: its balance, less holds of its own refused searches that may not be given back yet. */
  #isRight(availableMils: number): boolean {
    const heldMils = this.#member.balanceMils - availableMils;
    return heldMils >= 0 && heldMils <= this.#mayBeHeldMils && heldMils % priceMils === 0;
  }

  #note(what: Asked["what"], told: CallerAnswer, isRight: boolean): void {
    this.asked.push({ what, told, verdict: isRight ? "right" : told.status === 503 ? "refused" : "wrong" });
    // Its hold is given back while its caller is told already.
    if (what === "search" && told.status === 503) this.#mayBeHeldMils += priceMils;
  }
}
