import { globSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Failure, Page } from "../../worker/engine/provider.ts";
import { openProvider } from "../../worker/engine/registry.ts";
import { entries } from "../worker/engine/contract-entries.ts";
import { heldByDataForSeo } from "./held/dataforseo.ts";
import { type HeldPage, isRaw, type Raw } from "./held/held.ts";
import { heldBySearxng } from "./held/searxng.ts";
import { heldBySerpapi } from "./held/serpapi.ts";
import { heldBySerper } from "./held/serper.ts";
import { type AskedProvider, madeUp } from "./made-up-answers.ts";
import { engineConfig } from "./queries.ts";
import { answerWith } from "./searxng-page.ts";

export interface Answer {
  provider: AskedProvider;
  name: string;
  isRecorded: boolean;
  body: string;
  /** What it holds; undefined where it is no page. */
  holds: HeldPage | undefined;
}

type Told = Pick<Answer, "provider" | "body"> & { status?: number };

export const askedProviders = ["serpapi", "serper", "searxng", "dataforseo"] as const satisfies AskedProvider[];

const heldBy: Record<AskedProvider, (answer: Raw) => HeldPage | undefined> = {
  serpapi: heldBySerpapi,
  serper: heldBySerper,
  searxng: heldBySearxng,
  dataforseo: heldByDataForSeo,
};

const readers = {
  serpapi: openProvider("serpapi", engineConfig(entries.serpapi.settings)).read,
  serper: openProvider("serper", engineConfig(entries.serper.settings)).read,
  searxng: openProvider("searxng", engineConfig(entries.searxng.settings)).read,
  dataforseo: openProvider("dataforseo", engineConfig(entries.dataforseo.settings)).read,
} satisfies Record<AskedProvider, unknown>;

/** What its adapter makes of an answer, which came with 200 where nothing else is said. */
export function readAnswer({ provider, body, status = 200 }: Told): Page | Failure {
  return readers[provider]({ status, headers: {}, body });
}

/** The made-up answers, one of each provider. */
export function madeUpAnswers(): Answer[] {
  return askedProviders.map((provider) => ({
    ...answerOf(provider, JSON.stringify(madeUp[provider])),
    name: "made up",
    isRecorded: false,
  }));
}

/**
 * The answers that were recorded: `<provider>/<name>.json` in this folder, which need not be there.
 * A row of SearXNG alone counts as an answer with this row.
 */
export function recordedAnswers(folder: string): Answer[] {
  const paths = globSync(`{${askedProviders.join(",")}}/*.json`, { cwd: folder }).toSorted();
  return paths.flatMap((path) => {
    const provider = askedProviders.find((name) => name === dirname(path));
    if (provider === undefined) return [];
    const recorded = readFileSync(join(folder, path), "utf8");
    const found: unknown = JSON.parse(recorded);
    const isRow = provider === "searxng" && isRaw(found) && !("results" in found);
    const body = isRow ? JSON.stringify(answerWith({ results: [found] })) : recorded;
    return [{ ...answerOf(provider, body), name: basename(path, ".json"), isRecorded: true }];
  });
}

function answerOf(provider: AskedProvider, body: string): Omit<Answer, "name" | "isRecorded"> {
  const json: unknown = JSON.parse(body);
  return { provider, body, holds: isRaw(json) ? heldBy[provider](json) : undefined };
}
