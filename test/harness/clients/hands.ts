import type { Locator, Page } from "playwright-core";

/** How a person works on a page, with the number of clicks or of keyboard stops that it took. */
export interface Hands {
  steps: number;
  /** A link, a button or a summary. */
  press: (target: Locator) => Promise<void>;
  fill: (field: Locator, text: string) => Promise<void>;
  /** A day in a field for dates. */
  date: (field: Locator, day: Date) => Promise<void>;
  /** An option of a select. */
  choose: (select: Locator, option: string) => Promise<void>;
}

/** Someone with a pointer: each thing that is pressed and each field that is entered is a click. */
export function mouse(): Hands {
  const hands: Hands = {
    steps: 0,
    press: async (target) => {
      hands.steps += 1;
      await target.click();
    },
    fill: async (field, text) => {
      hands.steps += 1;
      await field.fill(text);
    },
    date: (field, day) => hands.fill(field, day.toISOString().slice(0, 10)),
    choose: async (select, option) => {
      hands.steps += 1;
      await select.selectOption({ label: option });
    },
  };
  return hands;
}

/** More stops has no page. */
const stopsMax = 150;

/** Someone with a keyboard alone: tab to the thing, then Enter or the text. Fails if the tab key does not get there. */
export function keyboard(page: Page): Hands {
  const reach = async (target: Locator) => {
    await target.waitFor({ state: "attached" });
    for (let stops = 0; stops < stopsMax; stops += 1) {
      await page.keyboard.press("Tab");
      if (await target.evaluate((element) => element.matches(":focus"))) return;
    }
    throw new Error(`the tab key does not reach ${target.toString()}`);
  };
  const hands: Hands = {
    steps: 0,
    press: async (target) => {
      hands.steps += 1;
      await reach(target);
      await page.keyboard.press("Enter");
    },
    fill: async (field, text) => {
      hands.steps += 1;
      await reach(field);
      await page.keyboard.press("Control+A");
      await page.keyboard.type(text);
    },
    date: async (field, day) => {
      hands.steps += 1;
      await reach(field);
      // As the field of a browser in American English expects it.
      await page.keyboard.type(
        day.toLocaleDateString("en-US", { day: "2-digit", month: "2-digit", year: "numeric", timeZone: "UTC" }),
      );
    },
    choose: async (select, option) => {
      hands.steps += 1;
      await reach(select);
      await page.keyboard.type(option);
    },
  };
  return hands;
}
