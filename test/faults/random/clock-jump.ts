/** Loaded in front of a process (`node --import`): its clock jumps ahead by an hour, and back at the next SIGUSR2. */
const jumpMs = 3_600_000;
let aheadMs = 0;
const RealDate = Date;

globalThis.Date = class extends RealDate {
  constructor(...given: []) {
    // What is given is one of the many forms of Date's arguments; only the empty one reads the clock.
    if (given.length === 0) super(RealDate.now() + aheadMs);
    else super(...given);
  }

  static override now(): number {
    return RealDate.now() + aheadMs;
  }
} as DateConstructor; // A class cannot be called without `new`, which nobody here does.

process.on("SIGUSR2", () => {
  aheadMs = aheadMs === 0 ? jumpMs : 0;
});
