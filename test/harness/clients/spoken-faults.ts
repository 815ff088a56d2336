import type { Page } from "playwright-core";

const landmarks = new Set("banner complementary contentinfo form main navigation region search".split(" "));
const controls = new Set("button checkbox combobox link radio searchbox spinbutton switch textbox".split(" "));
/** A screen reader says which of them it is in, so two of them may have equal controls. */
const items = new Set(["row", "listitem"]);

/**
 * What a person misses who hears a page: one title, headings in order, a landmark around every control, and for each control a name
 * that no other one in its landmark has, unless both are links to the same page.
 */
export async function spokenFaults(page: Page): Promise<string[]> {
  const faults: string[] = [];
  const levels: number[] = [];
  const ends = new Map<string, string>();
  for (const { role, name, level, place, url } of readTree(await page.locator("body").ariaSnapshot())) {
    if (role === "heading") levels.push(level);
    if (!controls.has(role)) continue;
    const called = `${place}: ${role} "${name}"`;
    if (name === "") faults.push(`${called} has no name`);
    if (place === "" && url !== "#content") faults.push(`${called} is in no landmark`);
    if (ends.has(called) && (url === "" || ends.get(called) !== url)) faults.push(`${called} is ambiguous`);
    ends.set(called, url);
  }
  const isOrdered = levels.every((level, at) => level <= (levels[at - 1] ?? 0) + 1);
  if (!isOrdered || levels.filter((level) => level === 1).length !== 1) faults.push(`headings: ${levels.join(" ")}`);
  return faults;
}

/**
 * Reads Playwright's snapshot of the accessibility tree (https://playwright.dev/docs/aria-snapshots): a line `- role "name" [level=1]`
 * for each node, indented by its depth, and for a link `- /url: address` below it.
 */
function readTree(snapshot: string) {
  const nodes: { role: string; name: string; level: number; place: string; url: string }[] = [];
  const around: { depth: number; place: string }[] = [];
  for (const [at, line] of snapshot.split("\n").entries()) {
    const [, url] = /^ *- \/url: "?(.*?)"?$/.exec(line) ?? [];
    const last = nodes.at(-1);
    if (url !== undefined && last) last.url = url;
    const [, indent = "", role = "", name = "", level = ""] =
      /^( *)- '?([a-z]+)(?: "((?:[^"\\]|\\.)*)")?.*?(?:\[level=(\d)\].*)?$/.exec(line) ?? [];
    if (role === "") continue;
    while ((around.at(-1)?.depth ?? -1) >= indent.length) around.pop();
    nodes.push({ role, name, level: Number(level), place: around.map(({ place }) => place).join(" "), url: "" });
    if (landmarks.has(role)) around.push({ depth: indent.length, place: `${role} ${name}`.trim() });
    else if (items.has(role)) around.push({ depth: indent.length, place: `${role} ${at}` });
  }
  return nodes;
}
