import { expect, test } from "vitest";
import { googleCountryName } from "../../../shared/query/countries.ts";
import { countryOf, isFinerThanCountry, readLocation } from "../../../shared/query/locations.ts";
import { readQuery } from "../../../shared/query/query.ts";
import { countries } from "../../harness/fixtures/countries.ts";
import { issuesOf, suggestionsFor } from "../../harness/fixtures/queries.ts";

test.each([
  ["usa", "United States"],
  ["U.S.", "United States"],
  ["Great Britain", "United Kingdom"],
  ["UK", "United Kingdom"],
  ["deu", "Germany"],
  ["Russian Federation", "Russia"],
  ["Seoul, Korea, Republic of", "Seoul,South Korea"],
  ["Virgin Islands, U.S.", "U.S. Virgin Islands"],
  ["Taiwan, Province of China", "Taiwan"],
  ["Islamic Republic of Iran", "Iran"],
  ["Viet Nam", "Vietnam"],
  ["Hong Kong", "Hong Kong"],
  ["ivory coast", "Côte d'Ivoire"],
  ["München, Bayern, de", "München,Bayern,Germany"],
  ["Wien, Österreich", "Wien,Austria"],
  ["Berlin, Germany, DE", "Berlin,Germany"],
  ["Austin, USA, TX", "Austin,Texas,United States"],
  ["Singapore, SG", "Singapore,Singapore"],
  ["Panama City, Panama, PA", "Panama City,Panama,Panama"],
  ["Genève, Suisse", "Genève,Switzerland"],
  ["São Paulo, Brasil", "São Paulo,Brazil"],
  ["日本", "Japan"],
  ["香港", "Hong Kong"],
  ["the United States", "United States"],
  ["Nassau, The Bahamas", "Nassau,Bahamas"],
  ["Banjul, Gambia, The", "Banjul,Gambia"],
  ["Zürich, die Schweiz", "Zürich,Switzerland"],
  ["Dublin, Republic of Ireland", "Dublin,Ireland"],
  ["Tbilisi, Georgia, Republic of", "Tbilisi,Georgia"],
  ["Caracas, Venezuela, Bolivarian Republic of", "Caracas,Venezuela"],
  ["La Paz, Bolivia (Plurinational State of)", "La Paz,Bolivia"],
  ["Kinshasa, Congo, the Democratic Republic of the", "Kinshasa,Democratic Republic of the Congo"],
  ["Kinshasa, DR Congo", "Kinshasa,Democratic Republic of the Congo"],
  ["Yangon, Republic of the Union of Myanmar", "Yangon,Myanmar"],
  ["Yangon, Myanmar (Burma)", "Yangon,Myanmar"],
  ["Stanley, Falkland Islands (Islas Malvinas)", "Stanley,Falkland Islands"],
  ["Ramallah, Palestine, State of", "Ramallah,Palestinian Territories"],
  ["Virgin Islands, US", "U.S. Virgin Islands"],
  ["the Republic of China", "Taiwan"],
  ["People's Republic of China", "China"],
  ["Skopje, Macedonia", "Skopje,North Macedonia"],
  ["Mbabane, Swaziland", "Mbabane,Eswatini"],
  ["Amsterdam, Holland", "Amsterdam,Netherlands"],
  ["Riyadh, KSA", "Riyadh,Saudi Arabia"],
  ["Dili, East Timor", "Dili,Timor-Leste"],
])("the location %s is read as %s", (typed, canonical) => {
  expect(readQuery({ keyword: "a", location: typed }).location).toBe(canonical);
});

test("every country is found by its code and by its name in any case, and its name has no comma", () => {
  expect(countries.length).toBeGreaterThan(240);
  for (const { code, name } of countries) {
    expect(name).not.toMatch(/,|& | - /);
    for (const typed of [
      code,
      name,
      name.toUpperCase(),
      `Somewhere, ${name}`,
      `Somewhere,${googleCountryName(code)}`,
    ]) {
      expect(readLocation(typed)).toMatchObject({ countryCode: code });
    }
    expect(countryOf(`Somewhere,${name}`)).toBe(code);
  }
});

test.each([
  ["Berlin, DE", "Berlin,Germany"],
  ["München, DE", "München,Germany"],
  ["Garmisch-Partenkirchen, Bayern, DE", "Garmisch-Partenkirchen,Bayern,Germany"],
  ["Oberammergau, DE", "Oberammergau,Germany"], // 5,000 inhabitants, and no Oberammergau in Delaware
  ["Bavaria, DE", "Bavaria,Germany"],
  ["Wilmington, DE", "Wilmington,Delaware,United States"],
  ["Toronto, CA", "Toronto,Canada"],
  ["Paris, ON, CA", "Paris,ON,Canada"],
  ["los angeles, ca", "los angeles,California,United States"],
  ["Athens, GA", "Athens,Georgia,United States"],
  ["Libreville, GA", "Libreville,Gabon"],
  ["Springfield, IL", "Springfield,Illinois,United States"],
  ["Chicago, IL", "Chicago,Illinois,United States"],
  ["Tel Aviv, IL", "Tel Aviv,Israel"],
  ["Boise, ID", "Boise,Idaho,United States"],
  ["Little Rock, AR", "Little Rock,Arkansas,United States"],
  ["Denver, CO", "Denver,Colorado,United States"],
  ["Bogota, CO", "Bogota,Colombia"],
  ["Boston, MA", "Boston,Massachusetts,United States"],
  ["St. Louis, MO", "St. Louis,Missouri,United States"],
  ["Atlanta, Georgia", "Atlanta,Georgia,United States"],
  ["Batumi, Georgia", "Batumi,Georgia"],
  ["Paris, TX", "Paris,Texas,United States"],
  ["New York, NY", "New York,New York,United States"],
  ["Buffalo, N.Y.", "Buffalo,New York,United States"],
  ["Terlingua, TX", "Terlingua,Texas,United States"], // 78 inhabitants
  ["Washington, DC", "Washington,District of Columbia,United States"],
  ["Orange County, CA", "Orange County,California,United States"],
  ["Germany, DE", "Germany"],
  ["Wilmington, Germany, DE", "Wilmington,Germany"],
  ["TX", "Texas,United States"],
  ["CA", "Canada"],
  ["DE", "Germany"],
])(
  "a state's code is read as the state that has the city, or else as the country that has it: %s is %s",
  (typed, canonical) => {
    expect(readLocation(typed)).toMatchObject({ location: canonical });
    expect(readLocation(canonical)).toMatchObject({ location: canonical });
  },
);

test.each([
  ["Salem, IN", "Salem, Indiana, United States", "Salem, India"],
  ["Ontario, CA", "Ontario, California, United States", "Ontario, Canada"],
  ["Blah, DE", "Blah, Delaware, United States", "Blah, Germany"],
  ["Perth, WA", "Perth, Washington, United States", "Perth, Western Australia, Australia"],
])("%s is refused, because both readings exist or neither does, and the message has both", (typed, ...readings) => {
  expect(suggestionsFor(typed)).toEqual(readings);
});

test.each([
  ["Chicgo, IL", "Chicago, Illinois, United States"],
  ["San Deigo, CA", "San Diego, California, United States"],
  ["Los Aneles, CA", "Los Angeles, California, United States"], // The city has names in other languages that are as close.
  ["Torronto, CA", "Toronto, Canada"],
])("%s is refused, and the message has the city that it misspells, not the typo: %s", (typed, meant) => {
  expect(suggestionsFor(typed)[0]).toBe(meant);
  expect(suggestionsFor(typed).join()).not.toContain(typed.split(",")[0]);
});

test.each([
  ["Munich", ["Munich, Germany"]],
  ["München", ["München, Germany"]],
  ["Sao Paulo", ["São Paulo, Brazil"]],
  ["東京", ["東京, Japan"]],
  ["Toronto", ["Toronto, Canada", "Toronto, Ohio, United States"]],
  ["Berlin", ["Berlin, Germany", "Berlin, Ohio, United States"]],
  ["Wilmington", ["Wilmington, North Carolina, United States", "Wilmington, Delaware, United States"]],
  ["Los Angeles", ["Los Angeles, California, United States", "Los Angeles, Chile"]],
  ["Athens", ["Athens, Greece", "Athens, Georgia, United States"]],
  ["Springfield", ["Springfield, Missouri, United States", "Springfield, Massachusetts, United States"]],
  ["Boston", ["Boston, Massachusetts, United States", "Boston, United Kingdom"]],
  ["Paris", ["Paris, France", "Paris, South Africa"]],
  ["New York", ["New York, United States", "New York, New York, United States"]],
  ["Wilmington DE", ["Wilmington, Delaware, United States"]],
  ["Los Angeles CA", ["Los Angeles, California, United States"]],
])("the bare name %s is refused with the places that bear it, the largest first: %j, …", (typed, largest) => {
  expect(suggestionsFor(typed).slice(0, 2)).toEqual(largest);
  expect(suggestionsFor(typed).length).toBeLessThanOrEqual(10);
  for (const place of suggestionsFor(typed)) {
    expect(readLocation(place)).toMatchObject({ location: place.replaceAll(", ", ",") });
  }
});

test("a location that is only a country is distinguished from a city or region in it", () => {
  expect(isFinerThanCountry("Germany")).toBe(false);
  expect(isFinerThanCountry("Berlin,Germany")).toBe(true);
});

test("a refused country comes with suggestions for misspelled and ambiguous names", () => {
  expect(issuesOf({ keyword: "a", location: "Berlin, Germny" })[0]?.message).toContain('"Berlin, Germany"');
  expect(issuesOf({ keyword: "a", location: "Congo" })[0]?.message).toContain('"Democratic Republic of the Congo"');
});

test.each([
  ["Nassau, The Bahams", "Nassau, Bahamas"],
  ["Nassau, the, Bahams", "Nassau, Bahamas"],
  ["Kingston Commonwealth of Jamaica", "Kingston, Jamaica"],
  ["State of Georgia", "Georgia"],
  ["Atlanta, State of Texas", "Atlanta, Texas, United States"],
  ["Minna, State of Niger", "Minna, Niger, Nigeria"],
  ["Germany, Berlin", "Berlin, Germany"],
  ["Deutschland, Köln", "Köln, Germany"],
  ["United States, Chicago", "Chicago, Illinois, United States"],
  ["Greater London", "London, United Kingdom"],
  ["USA, Texas", "Texas, United States"],
  ["Atlanta, State of GA", "Atlanta, Georgia, United States"],
  ["Seoul, Korea", "Seoul, South Korea"],
  ["Boston, Mass.", "Boston, Massachusetts, United States"],
  ["Chicago, Ill.", "Chicago, Illinois, United States"],
  ["Tampa, Fla.", "Tampa, Florida, United States"], // Not `Tampa, Flóahreppur, Iceland`.
  ["Hargeisa, Somalilund", "Hargeisa, Somalia"],
  ["Belo Horizonte - MG", "Belo Horizonte, Minas Gerais, Brazil"], // Not Madagascar.
  ["Brisbane QLD", "Brisbane, Queensland, Australia"],
  ["Austin, TX, 78701", "Austin, Texas, United States"],
  ["Berlin, 10115", "Berlin, Germany"],
  ["Belo Horizonte, MG, 30110", "Belo Horizonte, Minas Gerais, Brazil"],
  ["USA, Texas, Austin", "Austin, Texas, United States"],
  ["Texas, Austin", "Austin, Texas, United States"],
])("%s suggests %s, and never a prefix such as `State of` as a location", (typed, suggestion) => {
  expect(issuesOf({ keyword: "a", location: typed })[0]?.message).toContain(`Did you mean "${suggestion}"`);
});

test.each([
  "Freedonia",
  "Blah, Somalilund",
  "Xoyland",
  "Atlanta, Georgia, State of",
  "Republic of",
  "Samoa (American)",
  "Noland",
  "Bostn",
])("%s resembles no country, so nothing is suggested", (typed) => {
  expect(issuesOf({ keyword: "a", location: typed })[0]?.message).not.toContain("Did you mean");
});

// With one call for each postcode, the last of these would take longer than any test.
test.each([
  "Berlin,,Germany",
  ",Germany",
  "Germany,",
  "Berlin, \u200b, Germany",
  "Gotham City",
  "x".repeat(255),
  `Xqz${", 1".repeat(80)}`,
])("%j is refused, and the message repeats at most 64 characters of it", (typed) => {
  const [issue] = issuesOf({ keyword: "a", location: typed });
  expect(issue?.path).toBe("location");
  expect(issue?.message).not.toContain("x".repeat(65));
});
