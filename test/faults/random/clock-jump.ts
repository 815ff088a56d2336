/** Loaded before a process (`node --import`): its clock jumps ahead by an hour, and back at the next SIGUSR2. */
const jumpMs = 3_600_000;
let aheadMs = 0;
const RealDate = Date;

globalThis.Date = class extends RealDate {
  constructor(...given: []) {
    // Only the empty overload of Date reads the clock; every other one is passed on.
    if (given.length === 0) super(RealDate.now() + aheadMs);
    else super(...given);
  }

  static override now(): number {
    return RealDate.now() + aheadMs;
  }
} as DateConstructor; // A class cannot be called without `new`, which no code here does.

process.on("SIGUSR2", () => {
  aheadMs = aheadMs === 0 ? jumpMs : 0;
});
