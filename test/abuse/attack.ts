import type { AttackStack, AttackStackOptions } from "./attack-stack.ts";

/** How hard an attack strikes: as long as a test may take, or with all its force. */
export type Strength = "quick" | "full";

/** One promise that an attack tried to break. */
export interface Finding {
  promised: string;
  seen: string;
  held: boolean;
}

/** What a caller without rights to the machine does to get something for nothing, or to stop others. */
export interface Attack {
  name: string;
  /** What the attacker does. */
  tried: string;
  /** What the attacked processes need besides the usual. */
  stack?: AttackStackOptions;
  run: (stack: AttackStack, strength: Strength) => Promise<Finding[]>;
}

/** One line of the report. */
export interface AttackRow extends Finding {
  attack: string;
  tried: string;
}

export const rowsOf = ({ name, tried }: Attack, findings: readonly Finding[]): AttackRow[] =>
  findings.map((finding) => ({ attack: name, tried, ...finding }));
