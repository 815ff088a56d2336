import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openBrowser } from "../harness/clients/browser.ts";
import { withoutChromium } from "../harness/clients/chromium.ts";
import { Service } from "../harness/processes/service.ts";
import { StripeStub } from "../harness/stubs/stripe-stub.ts";
import { measureState } from "./measure.ts";
import type { PageState } from "./open-state.ts";
import { openStates } from "./states.ts";
import { bytesMaxOf } from "./weights.ts";

/** All pages in all their states, as `npm run shots` and `npm run bench -- pages` open them. */

describe.skipIf(withoutChromium !== "")(`in Chromium${withoutChromium}`, () => {
  let service: Service;
  let stripe: StripeStub;
  let browser: Browser;
  let states: PageState[];
  beforeAll(async () => {
    [service, stripe, browser] = await Promise.all([Service.start(), StripeStub.start(), openBrowser()]);
    states = await openStates(service, stripe);
  });
  afterAll(async () => {
    await browser?.close();
    await stripe?.close();
    await service?.stop();
  });

  // The tests of the reference know the findings of axe in Scalar's own elements.
  const isScalar = (name: string) => name.startsWith("reference");

  test.each([
    { width: 320, dark: false, next: { width: 390, dark: true } },
    { width: 1440, dark: true, next: { width: 768, dark: false } },
  ])(
    "pages do not shift while they load, fit the screen, are accessible and well read aloud, load nothing from other origins, and stay within their weight, at $width and $next.width px, light and dark",
    async (look) => {
      const faults = [];
      for (const state of states) {
        const { name } = state;
        const measured = await measureState({ browser, service }, state, { ...look, hasAxe: !isScalar(name) });
        const { shifts, sentBytes, findings, foreign, complaints, tooWidePx } = measured;
        faults.push(...[...shifts, ...foreign, ...complaints].map((fault) => ({ name, fault })));
        if (tooWidePx > 0) faults.push({ name, tooWidePx });
        if (sentBytes > bytesMaxOf(name)) faults.push({ name, sentBytes, bytesMax: bytesMaxOf(name) });
        faults.push(...findings.map((finding) => ({ name, finding })));
      }
      expect(faults).toEqual([]);
    },
  );
});
