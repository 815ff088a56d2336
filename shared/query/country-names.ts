/**
 * Country names in Google's list of locations that differ from the canonical names. The providers look up locations in this list
 * (developers.google.com/google-ads/api/data/geotargets; DataForSEO: GET /v3/serp/google/locations, both as of 2025).
 */
export const googleNames: ReadonlyMap<string, string> = new Map([
  ["BL", "Saint Barthelemy"],
  ["BS", "The Bahamas"],
  ["CI", "Cote d'Ivoire"],
  ["CV", "Cabo Verde"],
  ["CW", "Curacao"],
  ["FK", "Falkland Islands (Islas Malvinas)"],
  ["GM", "The Gambia"],
  ["GS", "South Georgia and the South Sandwich Islands"],
  ["HM", "Heard Island and McDonald Islands"],
  ["MM", "Myanmar (Burma)"],
  ["PS", "Palestine"],
  ["RE", "Reunion"],
  ["SH", "Saint Helena, Ascension and Tristan da Cunha"],
  ["ST", "Sao Tome and Principe"],
  ["TF", "French Southern and Antarctic Lands"],
  ["TR", "Turkiye"],
  ["UM", "United States Minor Outlying Islands"],
  ["VC", "Saint Vincent and the Grenadines"],
]);

/** Usual and older English names that neither ICU nor the package i18n-iso-countries has. */
export const additionalNames: ReadonlyMap<string, readonly string[]> = new Map([
  ["BA", ["Bosnia"]],
  ["CD", ["DRC", "DR Congo", "Democratic Republic of Congo", "Congo DRC", "Congo-Kinshasa", "Zaire"]],
  ["CG", ["Republic of Congo", "Congo-Brazzaville"]],
  ["CN", ["PRC"]],
  ["FK", ["Falklands"]],
  ["GB", ["Britain", "United Kingdom of Great Britain and Northern Ireland"]],
  ["KP", ["DPRK", "Democratic People's Republic of Korea", "Korea, North"]],
  ["KR", ["Korea, South"]],
  ["LA", ["Lao PDR"]],
  ["MK", ["Macedonia", "FYROM"]],
  ["NL", ["Holland"]],
  ["SA", ["KSA"]],
  ["SZ", ["Swaziland"]],
  ["TL", ["East Timor"]],
  // Otherwise it would be read as a long name of China.
  ["TW", ["Republic of China", "Taiwan, Republic of China"]],
  ["VA", ["Vatican"]],
]);
