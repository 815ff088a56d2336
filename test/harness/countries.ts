import { countryName } from "../../shared/countries.ts";

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ".split("");

/** Every country that we know, found without the list that we know it from. */
export const countries: { code: string; name: string }[] = letters
  .flatMap((first) => letters.map((second) => first + second))
  .flatMap((code) => {
    const name = countryName(code);
    return name === undefined ? [] : [{ code, name }];
  });
