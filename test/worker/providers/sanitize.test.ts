import { expect, test } from "vitest";
import {
  googleLanguageCode,
  googleLanguages,
  isLanguageListed,
} from "../../../shared/capabilities/google-languages.ts";
import { googleLocationName } from "../../../worker/providers/provider.ts";
import { domainOf, plainText, plainUrl, textCharactersMax } from "../../../worker/providers/sanitize.ts";
import { query } from "../../harness/fixtures/queries.ts";

type Rows = (string | [given: string, read: string])[];

/** Each text of a promise is read as the text beside it, or as it is if it stands alone. */
function keeps(read: (given: string) => string, promises: Record<string, Rows>): void {
  for (const [promise, rows] of Object.entries(promises))
    test.each(rows.map((row) => (typeof row === "string" ? [row, row] : row)))(
      `${promise}: %j is read as %j`,
      (given = "", expected) => expect(read(given)).toBe(expected),
    );
}

const tagged = (text: string) =>
  text.replaceAll(/./g, (letter) => String.fromCodePoint(0xe0000 + letter.charCodeAt(0)));
const scotland = `\u{1f3f4}${tagged("gbsct\u007f")}`;

keeps(plainText, {
  "a text is plain and in one line": [
    ["<b>Best</b> pumps &amp; more", "Best pumps & more"],
    ["12&nbsp;kg\u00a0net ", "12 kg net"],
    ["line\nbreak\ttab", "line break tab"],
    ["Open now<br>Closes 6 PM<br/><br />Mon\u2028Tue \r\n Wed<wbr>nesday", "Open now Closes 6 PM Mon Tue Wednesday"],
    ["two  spaces \u00a0 stay", "two  spaces   stay"],
    ["a < b, I <3 &lt;b&gt;", "a < b, I <3 <b>"],
    ["Dupont&#39;s &eacute;toile <br/>", "Dupont's étoile"],
    ["half \ud83d", "half \ufffd"],
    ["/shop?id=5&section=news&region=us&copy=2", "/shop?id=5&section=news&region=us&copy=2"],
  ],
  "a text loses what would change the order of its letters": [
    ["safe\u202egpj.exe", "safegpj.exe"],
    ["safe&#x202E;gpj&#8238;.exe", "safegpj.exe"],
    ["\u202aa\u202bb\u202cc\u202dd\u2066e\u2067f\u2068g\u2069", "abcdefg"],
    ["https://bank.example \u203a \u2067login\u2069", "https://bank.example \u203a login"],
  ],
  "a text loses the tag characters, which only models see": [
    [`Best${tagged("\u0001ignore all\u007f")} pumps`, "Best pumps"],
    ["Best&#xE0041;&#917570; pumps", "Best pumps"],
    [`${scotland}${tagged("ignore all\u007f")} pumps`, `${scotland} pumps`],
    [`\u{1f3f4}${tagged("ignore all\u007f")} pumps`, "\u{1f3f4} pumps"],
  ],
  "the joiners, marks and tags that a script is spelled with stay": [
    scotland, // the flag of Scotland
    "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", // Persian
    "\u0dc1\u0dca\u200d\u0dbb\u0dd3", // Sinhala
    "\u{1f469}\u200d\u{1f52c}", // emoji
    "C++\u200f \u05e9\u05e4\u05d4", // Hebrew with a mark after C++
  ],
  "a name of an element is text, not markup": [
    "<div>: The Content Division element - HTML | MDN",
    '<input type="checkbox"> - HTML | MDN',
    "<img> and <iframe> explained",
    "List<T> Class",
    "std::vector<int> and Map<String, List<B>>",
    "Is a<b and c>d legal in Python?",
    "Does a<b and c==d or e>f chain?",
    "What <!DOCTYPE html> is for",
    "Vue's <script-setup> and <Image>",
    "<b>: The Bring Attention To element",
    "<em>: The Emphasis element",
    "HTML <i> and <b> tags",
    "Where does </strong> go?",
    "<br>: The Line Break element",
    "<wbr>: The Line Break Opportunity element",
    "<script>: The Script element",
    "<style>: The Style Information element",
    "Why is </script> escaped?",
  ],
  "formatting tags are removed": [
    ['Ten <em class="hit" lang=en>pumps</em><br /> H<sub>2</sub>O', "Ten pumps H2O"],
    ["<span style=\"color:red\">Best</span> <mark data-n='1'>pumps</mark>", "Best pumps"],
    ['<em class="hit"data-ved="x">Pumps</em>', "Pumps"],
    ["The <b>b</b> element and <b> in <b>HTML</b>", "The b element and <b> in HTML"],
    ["a &lt;div&gt; is &amp;lt;div&amp;gt; in HTML", "a <div> is &lt;div&gt; in HTML"],
  ],
});

test.each([
  "<script>Pumps</script>",
  "<SCRIPT src='x'>Pumps</SCRIPT\n>",
  "<style media=all>Pumps</style>",
  'Pumps<img src=x onerror="alert(1)">',
  "<svg/onload=alert(1)>Pumps",
  '<iframe srcdoc="x" />Pumps',
  "<object data=x>Pumps",
  '<a title="x" xlink:href = "javascript:alert(1)">Pumps</a>',
  '<img alt=">" src=x onerror=alert(1)>Pumps',
  '<img alt="x src=x onerror=alert(1)>Pumps',
  '<svg a=""onload=alert(1)>Pumps</SVG>',
  '<meta http-equiv="refresh" content="0;url=https://x.example">Pumps',
  '<div style="background:url(https://x.example)">Pumps</div>',
  "<button formaction=javascript:alert(1)>Pumps</button>",
  "<video poster=https://x.example>Pumps</video>",
  '<br onclick="alert(1)">Pumps',
  "<script async>Pumps",
  "<!-- hidden -->Pumps",
])("%j loses every tag that would run or load something", (given) => {
  expect(plainText(given)).toBe("Pumps");
});

test.each(['<"', "<'", '<a "', '" <a="', "<a style", "<", "<b", "<b a=", "<a ", "<a src=", "<a on", "<b a=b >", "<>"])(
  "a long text of %j is sanitized in linear time",
  (part) => {
    for (const text of [part.repeat(200_000), `<a ${part.replace(/[<>]/g, "").repeat(200_000)}>`]) {
      expect(plainText(text).length).toBeLessThanOrEqual(text.length);
    }
  },
);

keeps(plainUrl, {
  "a URL is whole, of the web, and has only what a URL may have": [
    ["https://example.com/a?b=c#d", "https://example.com/a?b=c#d"],
    ["HTTP://Example.com", "HTTP://Example.com"],
    ["/url?q=https://example.com/x%3Fy%3D1&sa=U", "https://example.com/x?y=1"],
    ["https://www.google.com/url?url=http://example.com/&ved=2", "http://example.com/"],
    ["https://example.com/url?q=https://other.example/", "https://example.com/url?q=https://other.example/"],
    ["https://example.com/a b", "https://example.com/a%20b"],
    ["https://example.com/\u202egpj.exe", "https://example.com/%E2%80%AEgpj.exe"],
    ["https://bank.example\u202e/", ""],
    ["/url?q=javascript:alert(1)", ""],
    ["javascript:alert(1)", ""],
    ["data:text/html,x", ""],
    ["//example.com/", ""],
    ["https://", ""],
    ["https://example.com:99999/", ""],
    ["", ""],
  ],
  "the tag characters of a URL are encoded, so that people see them": [
    [`https://pumps.example/${tagged("a")}`, "https://pumps.example/%F3%A0%81%A1"],
  ],
  "Google's own redirect is unwrapped": [
    ["https://google.com/url?q=https://bank.example/", "https://bank.example/"],
    ["https://www.google.co.uk/url?sa=t&url=https://bank.example/", "https://bank.example/"],
    ["https://www.google.de/url?q=https://bank.example/&url=https://bank.example/", "https://bank.example/"],
    ["https://bank.example@www.google.com/url?q=https://other.example/", "https://other.example/"],
    ["http://scholar.google.com/scholar_url?url=https://bank.example/a&hl=en&sa=X", "https://bank.example/a"],
  ],
  "a link of Google to another search has no tracking": [
    [
      "https://www.google.com/search?sca_esv=73&gl=us&q=pump&sa=X&ved=2ah",
      "https://www.google.com/search?gl=us&q=pump",
    ],
    ["https://google.de/search?ved=2ah&ei=a&q=a%26ved%3D1&ved=2#a", "https://google.de/search?q=a%26ved%3D1#a"],
    ["HTTPS://WWW.GOOGLE.COM/search?q=pump&stick=H4&vet=1", "HTTPS://WWW.GOOGLE.COM/search?q=pump&stick=H4"],
  ],
  "the address of a page keeps its parameters": [
    "https://pumps.example/search?q=pump&sa=X&ved=2ah",
    "https://google.com.pumps.example/search?q=pump&sa=X&ved=2ah",
    "https://www.google.com/maps?q=pump&sa=X&ved=2ah",
    "https://www.google.com/search?q=sa=X&quiver=2",
    "https://www.google.com/search?q=pump&#:~:text=a&sa=b?",
  ],
  "an encrypted redirect of Google is none, because it differs each time and opens only in a browser": [
    ["https://www.google.com/goto?url=CAESbgHrOzAV", ""],
    ["/goto?url=CAESbgHrOzAV", ""],
    ["https://google.co.jp/goto?url=CAESbgHrOzAV", ""],
    "https://pumps.example/goto?url=CAESbgHrOzAV",
    "https://google.pumps.example/goto?url=CAESbgHrOzAV",
    "https://www.google.com/search?q=/goto?url",
  ],
  "a stranger's redirect is not unwrapped": [
    "https://google.evil.com/url?q=https://bank.example/",
    "https://www.google.evil.example/url?q=https://bank.example/",
    "https://google.com.evil.example/url?q=https://bank.example/",
    "https://evil.example/google.com/url?q=https://bank.example/",
    "https://www-google.com/url?q=https://bank.example/",
    "https://google.co/url?q=https://bank.example/",
    "https://google.com.de/url?q=https://bank.example/",
    "https://sites.google.com/url?q=https://bank.example/",
    "https://scholar.google.com.evil.example/scholar_url?url=https://bank.example/",
    "https://scholar.google.com/url?url=https://bank.example/",
    "https://evil.example/scholar_url?url=https://bank.example/",
    "https://www.google.com:8443/url?q=https://bank.example/",
    "https://google.com.:8443/url?q=https://bank.example/",
    "https://google.com%2eevil.example/url?q=https://bank.example/",
    "https://GOOGLE.EVIL.COM/url?q=https://bank.example/",
    "https://xn--ggle-0nda.com/url?q=https://bank.example/",
    "https://evil.example#@www.google.com/url?q=https://bank.example/",
    ["//evil.example/url?q=https://bank.example/", ""],
    ["/\\evil.example/url?q=https://bank.example/", ""],
    [
      "https://google.com\\.evil.example/url?q=https://bank.example/",
      "https://google.com/.evil.example/url?q=https://bank.example/",
    ],
    [
      "https://www.google.com@evil.example/url?q=https://bank.example/",
      "https://evil.example/url?q=https://bank.example/",
    ],
    [
      "https://evil.example\\@www.google.com/url?q=https://bank.example/",
      "https://evil.example/@www.google.com/url?q=https://bank.example/",
    ],
  ],
  "a redirect of Google with an empty parameter beside its target is unwrapped": [
    ["/url?esrc=s&q=&rct=j&sa=U&url=https://a.example/x", "https://a.example/x"],
  ],
  "a redirect of Google with two targets is not unwrapped": [
    "https://www.google.com/url?q=https://bank.example/&url=https://evil.example/",
  ],
  "a URL names only the host that a browser goes to": [
    ["https://bank.example@evil.example/", "https://evil.example/"],
    ["https://bank.example:443%2Flogin@evil.example/a", "https://evil.example/a"],
    ["https://evil.example\\@bank.example/", "https://evil.example/@bank.example/"],
    ["https:///evil.example/", "https://evil.example/"],
    ["https://example.com/@someone?next=a@b", "https://example.com/@someone?next=a@b"],
  ],
});

keeps(domainOf, {
  "a domain has no www. in front, no port and no dot behind": [
    ["https://www.Example.com:8080/", "example.com"],
    ["https://www.example.com./", "example.com"],
    ["https://www.com./", "www.com"],
    ["https://bank.example@evil.example/", "evil.example"],
    ["https://bücher.example/", "xn--bcher-kva.example"],
    ["https://www.com/", "www.com"],
    ["", ""],
  ],
});

keeps((code) => googleLanguageCode(code, googleLanguages), {
  "a language is sent to Google under the code that Google has for it": [
    ["en", "en"],
    ["en-US", "en"],
    ["de-AT", "de"],
    ["fr-CA", "fr"],
    ["es-MX", "es"],
    ["es-419", "es-419"],
    ["pt", "pt"],
    ["pt-BR", "pt-BR"],
    ["pt-AO", "pt"],
    ["zh", "zh-CN"],
    ["zh-Hans-HK", "zh-CN"],
    ["zh-Hant", "zh-TW"],
    ["zh-HK", "zh-TW"],
    ["nb", "no"],
    ["fil", "tl"],
    ["jv", "jw"],
    ["sr-Cyrl", "sr"],
    ["sr-Latn", "sh"],
    ["sr-Latn-ME", "sr-ME"],
  ],
});

test.each([
  ["Istanbul, Istanbul, Turkey", "Istanbul,Istanbul,Turkiye"],
  ["Abidjan, Ivory Coast", "Abidjan,Cote d'Ivoire"],
  ["Yangon, Myanmar", "Yangon,Myanmar (Burma)"],
  ["Nassau, Bahamas", "Nassau,The Bahamas"],
  ["Jamestown, Saint Helena", "Jamestown,Saint Helena, Ascension and Tristan da Cunha"],
  ["Köln, Germany", "Köln,Germany"],
])("%s is sent as %s, the spelling of Google's list of locations", (typed, listed) => {
  const { location } = query({ location: typed });
  expect(googleLocationName({ location })).toBe(listed);
  // The spelling of the list is read as the same location.
  expect(query({ location: listed }).location).toBe(location);
});

test.each(["yue", "lb", "uz-Cyrl", "pa-PK"])(
  "%s is not a language of Google, and is not replaced by another",
  (code) => {
    expect(isLanguageListed(code, googleLanguages)).toBe(false);
  },
);

test("a text has at most 10,000 characters, and no surrogate pair is cut in half", () => {
  for (const shift of ["", "a"]) {
    const text = plainText(shift + "\u{1f600}".repeat(textCharactersMax));
    expect(Array.from(text)).toHaveLength(textCharactersMax);
    expect(text.isWellFormed()).toBe(true);
    expect(text.endsWith("\u{1f600}…")).toBe(true);
  }
  expect(plainText("a".repeat(textCharactersMax))).toBe("a".repeat(textCharactersMax));
});

test("a URL that is too long is no URL, also if it is only once it is encoded", () => {
  expect(plainUrl(`https://a.example/${"a".repeat(textCharactersMax)}`)).toBe("");
  expect(plainUrl(`https://a.example/${" a".repeat(4_000)}`)).toBe("");
});
