/**
 * What Google's list of places calls countries where we say it otherwise. It is the list that the providers look places up in
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
