import { expect, test } from "vitest";
import { readPlaceNames } from "../../../worker/locations/place-names.ts";
import { placeNamesFile } from "../../harness/fixtures/place-names.ts";

test("a city has all its names, folded and each once, without the codes of its airports", () => {
  const read = readPlaceNames(placeNamesFile([["Köln", "CGN,Cologne,Colonia,Koeln,Köln,Keulen,科隆", "DE"]]));
  const names = read?.names.filter(({ countryCode }) => countryCode === "DE").map(({ folded }) => folded);
  expect(read?.places).toBe(10_001);
  expect(names).toEqual(["koln", "cologne", "colonia", "koeln", "keulen", "科隆"]);
});

test("a file that was cut off, or that is something else, is not read in part", () => {
  const file = placeNamesFile();
  expect(readPlaceNames(file.slice(0, -30))).toBeUndefined();
  expect(readPlaceNames("<html>Service unavailable</html>")).toBeUndefined();
});
