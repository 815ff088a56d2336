import iso6391 from "iso-639-1";
import { expect, test } from "vitest";
import { languageCodeOf, readLanguage } from "../../../shared/query/languages.ts";
import { readQuery } from "../../../shared/query/query.ts";
import { countries } from "../../harness/fixtures/countries.ts";
import { issuesOf } from "../../harness/fixtures/queries.ts";

test.each([
  ["german", "German", "de"],
  ["Español", "Spanish", "es"],
  ["日本語", "Japanese", "ja"],
  ["pt-BR", "Portuguese (Brazil)", "pt-BR"],
  ["Brazilian Portuguese", "Portuguese (Brazil)", "pt-BR"],
  ["zh-tw", "Chinese (Taiwan)", "zh-TW"],
  ["Traditional Chinese", "Chinese (Traditional)", "zh-Hant"],
  ["zh-Hant-HK", "Chinese (Traditional, Hong Kong)", "zh-Hant-HK"],
  ["English (UK)", "English (United Kingdom)", "en-GB"],
  ["es-419", "Spanish (Latin America)", "es-419"],
  ["iw", "Hebrew", "he"],
  ["Tagalog", "Filipino", "fil"],
  ["pt_BR", "Portuguese (Brazil)", "pt-BR"],
  ["UK English", "English (United Kingdom)", "en-GB"],
  ["Castilian", "Spanish", "es"],
  ["Farsi", "Persian", "fa"],
  ["简体中文", "Chinese (Simplified)", "zh-Hans"],
  ["繁体中文", "Chinese (Traditional)", "zh-Hant"],
  ["English (the UK)", "English (United Kingdom)", "en-GB"],
  ["Deutsch (Österreich)", "German (Austria)", "de-AT"],
  ["español (Latinoamérica)", "Spanish (Latin America)", "es-419"],
])("the language %s is read as %s, with the code %s", (typed, name, code) => {
  const query = readQuery({ keyword: "a", language: typed });
  expect([query.language, languageCodeOf(query.language)]).toEqual([name, code]);
});

test("reading the name or code of a language again gives the same language", () => {
  const tags = iso6391.getAllCodes().flatMap((code) => [code, `${code}-GB`, `${code}-Latn`, `${code}-Cyrl-419`]);
  const english = countries.map(({ code }) => `en-${code}`);
  for (const tag of [...tags, ...english, "fil", "haw", "gaa", "yue", "ckb", "sr-Glag"]) {
    const language = readLanguage(tag);
    expect(language).not.toHaveProperty("problem");
    expect(readLanguage("name" in language ? language.name : "")).toEqual(language);
    expect(readLanguage("code" in language ? language.code : "")).toEqual(language);
  }
});

test.each(["Klingon", "xx", "und", "de-1996", "en-u-ca-buddhist", "en-ZZ", "English (Mars)", "-", "1".repeat(5000)])(
  "%s is refused as a language",
  (language) => {
    expect(issuesOf({ keyword: "a", language })).toMatchObject([{ path: "language" }]);
  },
);

test.each([
  ["Portugese", "Portuguese"],
  ["jp", "Japanese"],
  ["CZ", "Czech"],
  ["Brazil", "Portuguese"],
])("a misspelled language, or a country in its place, is refused with a suggestion: %s", (typed, meant) => {
  expect(issuesOf({ keyword: "a", language: typed })[0]?.message).toContain(`Did you mean "${meant}"?`);
});
