import type { Row } from "../faults/report.ts";
import type { AttackStack, AttackStackOptions } from "./attack-stack.ts";

/** How hard an attack strikes: for as long as a test may take, or with full force. */
export type Strength = "quick" | "full";

/** One promise that an attack tried to break. */
export type Finding = Omit<Row, "what">;

/** What a caller without access to the machine does to get something for free, or to starve others. */
export interface Attack {
  name: string;
  /** What the attacker does. */
  tried: string;
  /** Whether it needs nothing special, and leaves the service as it was: such attacks run one after the other on one. */
  sharesStack?: true;
  /** What the attacked processes need, if not the default. */
  stack?: AttackStackOptions;
  run: (stack: AttackStack, strength: Strength) => Promise<Finding[]>;
}
