import type { Redis } from "ioredis";
import { countryNamesByAlias } from "../../shared/query/countries.ts";
import { foldLocationPart, foldName } from "../../shared/gazetteer/fold-name.ts";
import { readLargeCities } from "../../shared/gazetteer/gazetteer.ts";
import { listLanguages } from "../../shared/query/languages.ts";
import { whereKnown } from "../../shared/query/locations.ts";
import { ofSuggestions, takePageRequest } from "../billing/session/counted-window.ts";
import type { Handler } from "../billing/frame/account-handlers.ts";
import { requireSession, type Sessions } from "../billing/session/sessions.ts";
import { sendJson } from "../http/send-json.ts";

/**
 * What a person may mean who types a place or a language into the playground: countries, and the cities and languages by which the
 * service reads a query. A browser asks while the person types, and may keep the answer for an hour.
 */

const suggestionsMax = 8;
const charactersMax = 80;

/** What to put into the field, and another name of it. */
interface Suggestion {
  value: string;
  label?: string;
}

/** GET /playground/suggestions/location and …/language, with the typed text as `text`. */
export function handleSuggestions({ sessions, redis }: { sessions: Sessions; redis: Redis }) {
  const answer =
    (suggest: (text: string) => Suggestion[] | Promise<Suggestion[]>): Handler =>
    async (request, response) => {
      const { caller } = await requireSession(sessions, request, response, "searches");
      await takePageRequest(redis, caller, ofSuggestions);
      const { text } = request.query;
      const typed = typeof text === "string" ? text.slice(0, charactersMax) : "";
      response.setHeader("Cache-Control", "private, max-age=3600");
      sendJson(request, response, 200, JSON.stringify(await suggest(typed)));
    };
  return { location: answer(suggestLocations), language: answer(suggestLanguages) };
}

// One line for each name: the folded name, a tab, and the place. Bytes outside the heap, read on first use.
let places: Promise<Buffer> | undefined;

/** Countries first, then cities, the largest first. A city has its state or its country: `Austin, Texas, United States`. */
async function suggestLocations(text: string): Promise<Suggestion[]> {
  const folded = foldLocationPart(text);
  if (folded === "") return [];
  places ??= readPlaces().catch((error: unknown) => {
    places = undefined;
    throw error;
  });
  const lines = await places;
  const begins = Buffer.from(`\n${folded}`);
  const found = new Set<string>();
  for (let at = lines.indexOf(begins); at !== -1 && found.size < suggestionsMax; at = lines.indexOf(begins, at + 1))
    found.add(lines.toString("utf8", lines.indexOf("\t", at) + 1, lines.indexOf("\n", at + 1)));
  return [...found].map((value) => ({ value }));
}

/** Where Google's list of locations has another name than GeoNames. */
const googleName = (name: string) => (name === "New York City" ? "New York" : name);

async function readPlaces(): Promise<Buffer> {
  const countries = [...countryNamesByAlias()].map(([alias, name]) => `\n${foldLocationPart(alias)}\t${name}`);
  const cities = (await readLargeCities())
    .filter(({ name }) => !/[,()\d]/.test(name))
    .map((city) => `${googleName(city.name)}, ${whereKnown(city)}`)
    .map((place) => `\n${foldLocationPart(place)}\t${place}`);
  return Buffer.from(`${[...countries, ...cities].join("")}\n`);
}

// Read on first use: ICU takes milliseconds for the names of all languages in themselves.
let languages: { folded: string[]; suggestion: Suggestion }[] | undefined;

/** By the English name or the own name: `Ger`, `Deu`. */
function suggestLanguages(text: string): Suggestion[] {
  const typed = foldName(text);
  if (typed === "") return [];
  languages ??= listLanguages().map(({ name, ownName }) => ({
    folded: [foldName(name), foldName(ownName)],
    suggestion: { value: name, label: ownName },
  }));
  return languages
    .filter(({ folded }) => folded.some((name) => name.startsWith(typed)))
    .slice(0, suggestionsMax)
    .map(({ suggestion }) => suggestion);
}
