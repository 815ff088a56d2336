/**
 * The code by which Google's parameter `hl` knows a language. Google follows BCP 47 except where it is older: Chinese goes by region
 * and not by script, and both written forms of Norwegian are `no`.
 */
export function googleLanguage(languageCode: string): string {
  const { language, script, region } = new Intl.Locale(languageCode);
  if (language === "nb" || language === "nn") return "no";
  if (language !== "zh") return languageCode.toLowerCase();
  if (region === "HK" || region === "MO") return "zh-hk";
  return script === "Hant" || region === "TW" ? "zh-tw" : "zh-cn";
}
