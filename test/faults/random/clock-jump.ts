/** Preloaded into a process (`node --import`). At a SIGUSR2 its clock jumps an hour ahead, and at the next one back. */
const jumpMs = 3_600_000;
let aheadMs = 0;
const RealDate = Date;

globalThis.Date = class extends RealDate {
  constructor(...given: []) {
    // Only `new Date()` without arguments reads the clock.
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
