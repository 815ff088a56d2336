import type { Browser } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { createSignInCode } from "../../../api/billing/session/sign-in-codes.ts";
import { hashToken } from "../../../api/tokens/tokens.ts";
import { openBrowser, signInAt, type Visitor, visitor } from "../../harness/clients/browser.ts";
import { faultsOf } from "../../harness/clients/page-faults.ts";
import { withoutChromium } from "../../harness/clients/chromium.ts";
import { forgetSignIns, signIn } from "../../harness/clients/page-visitor.ts";
import type { Organization, Service } from "../../harness/processes/service.ts";
import { usualService } from "../../harness/processes/usual-stack.ts";

/** The playground as people use it. */

let service: Service;
let origin: string;
beforeAll(async () => {
  service = await usualService();
  origin = service.apis[0]?.url ?? "";
});
beforeEach(() => forgetSignIns(service));
afterAll(async () => {
  expect(await service.verify()).toMatchObject({ ok: true, violations: [] });
});

describe.skipIf(withoutChromium !== "")(`in Chromium${withoutChromium}`, () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser?.close());

  // In the page, because Playwright waits for a navigation that has begun: two presses, and Escape after a second.
  const impatience = `(() => {
    const button = document.querySelector(".keyword button");
    const pending = document.getElementById("pending");
    button.click();
    console.log(pending.textContent);
    button.click();
    const looking = setInterval(() => {
      const [second] = document.getElementById("elapsed").textContent.split(".");
      if (second !== "1") return;
      clearInterval(looking);
      // Screen readers do not read a status inside of something busy.
      console.log(pending.textContent, button.ariaDisabled, second, pending.closest("[aria-busy=true]"));
      dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
    }, 50);
  })()`;

  async function open(looks: Parameters<typeof visitor>[2] = {}): Promise<Visitor> {
    const person = await visitor(browser, [origin], looks);
    onTestFinished(() => person.context.close());
    return person;
  }

  /** The playground, where a new organization, or this one, has signed in. */
  async function openPlayground(looks?: Parameters<typeof visitor>[2], given?: Organization) {
    const organization = given ?? (await service.organization());
    const person = await open(looks);
    await signInAt(person.page, service, `${origin}/playground`, organization.token);
    return { ...person, ...organization };
  }

  async function linkOf({ token }: Organization): Promise<string> {
    return `${origin}/playground${await createSignInCode(service.redis, hashToken(token).toString("hex"))}`;
  }

  test("a link signs in once, leaves the address, and the first keys are the keyword", async () => {
    const link = await linkOf(await service.organization());
    const person = await open({ width: 390 });
    const { page, foreign, complaints } = person;
    await page.goto(link);
    await page.getByLabel("Keyword").waitFor();
    expect(page.url()).toBe(`${origin}/playground`);
    await page.keyboard.type("coffee");
    expect(await page.getByLabel("Keyword").inputValue()).toBe("coffee");
    expect(await page.getByLabel("Depth").isVisible()).toBe(false);
    await page.getByText("English · 10 results · Full").click();
    await page.getByLabel("Language", { exact: true }).fill("German");
    await page.getByLabel("Depth").selectOption("20");
    await page.getByLabel("ai_overview").check();
    await page.getByText("German · 20 results · Full · ai_overview").waitFor();
    expect(await faultsOf(person, "the form")).toEqual([]);
    expect({ foreign, complaints }).toEqual({ foreign: [], complaints: [] });
    for (const script of [true, false]) {
      const late = await open({ script });
      await forgetSignIns(service);
      await late.page.goto(link);
      await late.page
        .getByText(script ? "This link has been used" : "You get the first one from the operator")
        .waitFor();
      expect(await late.context.cookies()).toEqual([]);
    }
  });

  test("a link on another site does not sign a person in", async () => {
    const link = await linkOf(await service.organization());
    const { page, context } = await open();
    await page.route("http://localhost/", (route) =>
      route.fulfill({ contentType: "text/html", body: `<a href="${link}">Win</a>` }),
    );
    await page.goto("http://localhost/");
    await page.getByRole("link").click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    expect([page.url(), await context.cookies()]).toEqual([`${origin}/playground`, []]);
    await page.goto(link);
    await page.getByLabel("Keyword").waitFor();
  });

  test("without JavaScript a person searches by keyboard alone", async () => {
    const person = await openPlayground({ width: 320, script: false });
    const { page, foreign, complaints } = person;
    await page.getByLabel("Keyword").focus();
    await page.keyboard.type("it's");
    await page.keyboard.press("Enter");
    await page.locator("#answer .organic").first().waitFor();
    expect(await page.locator("h2:focus").textContent()).toBe("Answer");
    await page.getByText("This session: 1 search").click();
    await page.locator("#session").getByText("it's").waitFor();
    await page.getByRole("radio", { name: "JSON" }).check();
    await page.getByRole("region", { name: "JSON" }).getByText('"requestId": "req_').waitFor();
    expect(await page.locator("#answer .serp").isVisible()).toBe(false);
    expect(await faultsOf(person, "an answer")).toEqual([]);
    expect({ foreign, complaints }).toEqual({ foreign: [], complaints: [] });
  });

  // Whether a text that begins with Hebrew ends to the left of its beginning.
  const runsLeft = (selector: string, end: string) => `(() => {
    const text = document.querySelector(${JSON.stringify(selector)}).firstChild;
    const leftOf = (at) => {
      const range = document.createRange();
      range.setStart(text, at);
      range.setEnd(text, at + 1);
      return range.getBoundingClientRect().left;
    };
    return leftOf(text.data.indexOf(${JSON.stringify(end)})) < leftOf(0);
  })()`;

  test("a keyword and results that begin from right to left are read from right to left", async () => {
    const { page } = await openPlayground();
    await page.getByLabel("Keyword").fill("פיצה!");
    await page.keyboard.press("Enter");
    await page.locator(".serp .organic .title a", { hasText: "פיצה!" }).first().waitFor();
    expect(await page.evaluate(runsLeft(".serp .organic .title a", " by "))).toBe(true);
    await page.goto(`${origin}/billing/searches`);
    await page.locator("a.keyword").waitFor();
    expect(await page.evaluate(runsLeft("a.keyword", "!"))).toBe(true);
  });

  test("the back button leads to the fields of the form, after an answer and after the session has ended", async () => {
    const { page, context, token } = await openPlayground();
    const keyword = page.getByLabel("Keyword");
    const fieldsAre = async (typed: string) => {
      expect(await keyword.inputValue()).toBe(typed);
      expect(await page.getByLabel("Country or place").inputValue()).toBe("Berlin, Germany");
      expect(await page.getByLabel("organic", { exact: true }).isChecked()).toBe(true);
    };
    await page.getByText("English · 10 results · Full").click();
    await page.getByLabel("organic", { exact: true }).check();
    await page.getByLabel("Country or place").fill("Berlin, Germany");
    for (const typed of ["tea & cake", "coffee"]) {
      await keyword.fill(typed);
      await keyword.press("Enter");
      await page.locator("#answer .organic", { hasText: typed }).first().waitFor();
    }
    await page.goBack();
    await fieldsAre("coffee");
    await page.goBack();
    await fieldsAre("tea & cake");

    await context.clearCookies();
    await keyword.fill("cocoa");
    await keyword.press("Enter");
    await page.getByRole("heading", { name: "You are signed out" }).waitFor();
    await page.getByRole("link", { name: "Go to the playground" }).click();
    await forgetSignIns(service);
    await page.getByLabel("Token").fill(token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await keyword.waitFor();
    await fieldsAre("cocoa");
  });

  test("while a search runs the page says so and for how long, a second press and a stop pay nothing more, and its end has the focus", async () => {
    const person = await openPlayground({ width: 390 });
    const { page, organizationId } = person;
    const said: string[] = [];
    page.on("console", (message) => said.push(message.text()));
    await page.getByLabel("Keyword").fill("sandbox:slow=4000");
    await page.evaluate(impatience);
    await page.getByRole("status").filter({ hasText: "No longer waiting. The search runs on" }).waitFor();
    expect(said).toEqual(["Searching…", "Searching… true 1 null"]);
    expect(await faultsOf(person, "no longer waiting")).toEqual([]);
    await page.getByRole("button", { name: "Search", exact: true }).click();
    await page.locator("#answer .serp").waitFor();
    expect(await page.locator("h2:focus").textContent()).toBe("Answer");
    expect(await service.chargesOf({ organizationId })).toEqual([{ kind: "charge", mils: -5 }]);
    await page.getByLabel("Keyword").fill("sandbox:error");
    await page.keyboard.press("Enter");
    await page.getByText("No answer").waitFor();
    expect(await page.locator("h2:focus").textContent()).toBe("No answer");
  });

  test("a person cancels a search that runs, also with an edited form, and pays nothing, and after a charge is led to its answer", async () => {
    const person = await openPlayground({ width: 390 });
    const { page, complaints, organizationId } = person;
    await page.getByLabel("Keyword").fill("sandbox:slow=8000");
    // In the page, because Playwright waits for a navigation that has begun.
    const cancelling = `setTimeout(() => {
      document.querySelector("[name=keyword]").value = "edited";
      document.getElementById("cancel").click();
    }, 300);
    document.querySelector(".keyword button").click()`;
    expect(await page.getByRole("button", { name: "Cancel" }).isVisible()).toBe(false);
    await page.evaluate(cancelling);
    await page.getByRole("status").filter({ hasText: "Cancelled. Nothing was charged." }).waitFor();
    expect(await page.locator("input:focus").getAttribute("name")).toBe("keyword");
    expect(await faultsOf(person, "a cancelled search")).toEqual([]);
    await page.route("**/playground/cancel", async (route) => {
      await service.until(async () => (await service.ledgerOf(organizationId)).some(({ kind }) => kind === "charge"));
      await route.continue();
    });
    await page.getByLabel("Keyword").fill("sandbox:slow=500");
    await page.evaluate(cancelling);
    await page.getByRole("link", { name: "See its answer" }).waitFor();
    expect(await faultsOf(person, "a charged search")).toEqual([]);
    await service.rest();
    await page.getByRole("link", { name: "See its answer" }).click();
    await page.getByRole("heading", { name: "sandbox:slow=500" }).waitFor();
    await page.locator(".serp").waitFor();
    expect(complaints).toEqual([]);
    expect(await service.chargesOf({ organizationId })).toEqual([
      { kind: "refund", mils: 0 },
      { kind: "charge", mils: -5 },
    ]);
  });

  test("on a phone JSON and code are a tab away, the JSON folds and copies paths by keyboard and by click, and the answer's link opens for a colleague alone", async () => {
    const organization = await service.organization();
    const person = await openPlayground({ width: 390 }, organization);
    const { page, context, foreign, complaints } = person;
    await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin });
    const copied = () => page.evaluate("navigator.clipboard.readText()");
    const item = (path: string) => page.locator(`[data-path="${path}"]`);
    await page.getByLabel("Keyword").fill("coffee");
    await page.keyboard.press("Enter");
    await page.getByRole("radio", { name: "JSON" }).check();
    await page.getByRole("treeitem").first().focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.getByRole("status").filter({ hasText: "Copied requestId" }).waitFor();
    expect(await copied()).toBe("requestId");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Control+ArrowLeft");
    expect(await item("query.keyword").isVisible()).toBe(true);
    await page.keyboard.press("ArrowLeft");
    expect(await item("query.keyword").isVisible()).toBe(false);
    await item("results[0].title").locator(".key").click();
    await page.getByRole("status").filter({ hasText: "Copied results[0].title" }).waitFor();
    expect(await faultsOf(person, "the JSON")).toEqual([]);
    await page.getByRole("radio", { name: "Code" }).check();
    expect((await page.getByRole("region", { name: "curl" }).boundingBox())?.y).toBeLessThan(900);
    expect(await faultsOf(person, "the code")).toEqual([]);
    await page.getByRole("button", { name: "Copy link" }).click();
    await page.getByRole("button", { name: "Copied" }).waitFor();
    const link = String(await copied());
    expect(link).toMatch(new RegExp(`^${origin}/billing/searches/req_\\w+$`));
    await page.setViewportSize({ width: 1440, height: 900 });
    await service.rest();
    await page.goto(link);
    for (const beside of [page.locator(".serp"), page.getByRole("tree")]) expect(await beside.isVisible()).toBe(true);
    expect(await faultsOf(person, "the page of the search")).toEqual([]);
    expect({ foreign, complaints }).toEqual({ foreign: [], complaints: [] });
    const path = link.slice(origin.length);
    expect((await (await signIn(service, organization)).get(path)).text).toContain('<ol class="serp">');
    expect((await (await signIn(service, await service.organization())).get(path)).status).toBe(404);
  });

  test("the highlighted code and the price follow the form, and the price is what is charged", async () => {
    const organization = await service.organization({ terms: { pricePerPageMils: 4 } });
    const { page, organizationId } = await openPlayground({}, organization);
    await page.getByLabel("Keyword").fill("it's");
    await page.locator("summary").click();
    await page.getByLabel("Depth").selectOption("20");
    const [curl, javascript, python] = await page.locator("#code pre").allInnerTexts();
    const given = (text = "") => text.replaceAll(/\s+/g, "");
    expect(given(curl)).toContain(String.raw`{"keyword":"it'\''s","depth":20}`);
    expect(given(javascript)).toContain(`JSON.stringify({"keyword":"it's","depth":20})`);
    expect(given(python)).toContain(`json={"keyword":"it's","depth":20}`);
    const shown = await page.locator("#code").innerHTML();
    expect(shown).toContain('{\n    <span class="key">"keyword"</span>: <span class="string">"it\'s"</span>');
    expect(shown).toContain('<span class="number">20</span>\n    }');
    expect(await page.locator("#price").innerText()).toBe("$0.008");
    // The service marks the same tokens as the page's script.
    await page.goto(`${origin}/playground?keyword=it%27s&depth=20`);
    expect(await page.locator("#code").innerHTML()).toBe(shown);
    await page.getByRole("button", { name: "Search" }).click();
    await page.locator("#answer").waitFor();
    expect(await service.chargesOf({ organizationId })).toEqual([{ kind: "charge", mils: -8 }]);
  });

  test("the form lists suggestions while a person types", async () => {
    const { page, complaints } = await openPlayground();
    for (const details of await page.locator("#search details").all()) await details.locator("summary").click();
    const listed = (list: string, value: string) =>
      page.locator(`#${list} option[value="${value}"]`).waitFor({ state: "attached" });
    await page.getByLabel("Country or place").pressSequentially("berlin, ger");
    await listed("places", "Berlin, Germany");
    await page.getByLabel("Language", { exact: true }).pressSequentially("deut");
    await listed("languages", "German");
    expect(complaints).toEqual([]);
  });
});
