import { expect, test } from "vitest";
import { localeOf } from "../../../api/doors/door.ts";

const locales = [
  { locale: "de", expected: { language: "de" } },
  { locale: "de-AT", expected: { language: "de-AT", location: "AT" } },
  { locale: "pt_BR", expected: { language: "pt_BR", location: "BR" } },
  { locale: "zh-Hant-TW", expected: { language: "zh-Hant-TW", location: "TW" } },
  { locale: "German", expected: { language: "German" } },
  { locale: "en-XQ", expected: { language: "en" } },
  { locale: "all", expected: {} },
  { locale: "auto", expected: {} },
  { locale: undefined, expected: {} },
];

test.each(locales)(
  "the locale $locale chooses its language, and its country where it names one",
  ({ locale, expected }) => {
    expect(localeOf(locale)).toEqual(expected);
  },
);
