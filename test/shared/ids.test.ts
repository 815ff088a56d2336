import { expect, test } from "vitest";
import { newId, timeOfId } from "../../shared/ids.ts";

test("an id is a TypeID with a UUIDv7 of the moment at which it was made", () => {
  const sinceMs = Date.now();
  for (let made = 0; made < 1_000; made += 1) {
    const id = newId("req");
    // The digits e and f begin with the version, 7; 8 to b and r to v contain the variant.
    expect(id).toMatch(/^req_[0-7][0-9a-hjkmnp-tv-z]{9}[ef][0-9a-hjkmnp-tv-z]{2}[89abrstv][0-9a-hjkmnp-tv-z]{12}$/);
    expect(timeOfId(id).getTime()).toBeGreaterThanOrEqual(sinceMs);
    expect(timeOfId(id).getTime()).toBeLessThanOrEqual(Date.now());
  }
});

test("the time of an id is that of its UUID", () => {
  // A pair of TypeID's specification: 01890a5d-ac96-774b-bcce-b302099a8057.
  expect(timeOfId("tok_01h455vb4pex5vsknk084sn02q").getTime()).toBe(0x01890a5dac96);
});
