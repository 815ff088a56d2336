import fc from "fast-check";
import { type Money, type Real, retold } from "./money.ts";
import { watch } from "./watch.ts";

type Act<Given> = (money: Money, real: Real, given: Given) => Promise<void>;

/** One command: acts on the model and on the real system, then everything is looked at. */
export class Step<Given> implements fc.AsyncCommand<Money, Real> {
  readonly #name: string;
  readonly #given: Given;
  readonly #act: Act<Given>;

  constructor(name: string, given: Given, act: Act<Given>) {
    this.#name = name;
    this.#given = given;
    this.#act = act;
  }

  check(): boolean {
    return true;
  }

  async run(money: Money, real: Real): Promise<void> {
    try {
      await this.#act(money, real, this.#given);
      await watch(money, real);
    } catch (error) {
      throw retold(money, this.toString(), error);
    }
  }

  toString(): string {
    return `${this.#name}(${fc.stringify(this.#given)})`;
  }
}

/** All commands of one name. */
export function steps<Given>(name: string, given: fc.Arbitrary<Given>, act: Act<Given>) {
  return given.map((one): fc.AsyncCommand<Money, Real> => new Step(name, one, act));
}
