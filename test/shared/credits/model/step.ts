import fc from "fast-check";
import { type Model, type Real, withHistory } from "./model.ts";
import { compareWithModel } from "./compare-with-model.ts";

type Act<Input> = (model: Model, real: Real, input: Input) => Promise<void>;

/** A command: acts on the model and on the real system, then compares the two. */
export class Step<Input> implements fc.AsyncCommand<Model, Real> {
  readonly #name: string;
  readonly #input: Input;
  readonly #act: Act<Input>;

  constructor(name: string, input: Input, act: Act<Input>) {
    this.#name = name;
    this.#input = input;
    this.#act = act;
  }

  check(): boolean {
    return true;
  }

  async run(model: Model, real: Real): Promise<void> {
    try {
      await this.#act(model, real, this.#input);
      await compareWithModel(model, real);
    } catch (error) {
      throw withHistory(model, this.toString(), error);
    }
  }

  toString(): string {
    return `${this.#name}(${fc.stringify(this.#input)})`;
  }
}

/** An arbitrary of commands that share a name and an action. */
export function steps<Input>(name: string, input: fc.Arbitrary<Input>, act: Act<Input>) {
  return input.map((one): fc.AsyncCommand<Model, Real> => new Step(name, one, act));
}
