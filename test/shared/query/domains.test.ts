import { expect, test } from "vitest";
import { isSameOrSubdomain } from "../../../shared/query/domains.ts";
import { readQuery } from "../../../shared/query/query.ts";
import { issuesOf } from "../../harness/fixtures/queries.ts";

test.each([
  ["Example.COM", "example.com"],
  ["https://www.example.com/a/b?c#d", "example.com"],
  ["example.com.", "example.com"],
  ["www.com", "www.com"],
  ["www.www.com", "www.com"],
  ["www.www.example.com", "example.com"],
  ["wwww.example.com", "wwww.example.com"],
  ["例え.テスト", "xn--r8jz45g.xn--zckzah"],
  [`${"a.".repeat(120)}example`, `${"a.".repeat(120)}example`],
])("the target domain %s is read as %s", (typed, domain) => {
  expect(readQuery({ keyword: "a", targetDomain: typed }).targetDomain).toBe(domain);
  expect(readQuery({ keyword: "a", targetDomain: domain }).targetDomain).toBe(domain);
});

test.each([
  "localhost",
  "127.0.0.1",
  "1.2.3",
  "0x7f.1",
  "[::1]",
  "example.com:8080",
  "user@example.com",
  "*.example.com",
  "ex%41mple.com",
  "a_b.example",
  "-a.example",
  "a..example",
  "https://",
  "ftp://example.com",
  `${"a".repeat(64)}.example`,
  `${"a.".repeat(126)}example`,
])("%s is refused as a target domain", (typed) => {
  expect(issuesOf({ keyword: "a", targetDomain: typed })).toMatchObject([{ path: "targetDomain" }]);
});

test("a target domain of too many characters is refused, whatever host it would be converted to", () => {
  const ignored = "\u00ad";
  const typed = (count: number) => ({ keyword: "a", targetDomain: `${ignored.repeat(count)}pumps.example` });
  expect(readQuery(typed(10)).targetDomain).toBe("pumps.example");
  expect(issuesOf(typed(250))).toMatchObject([{ path: "targetDomain" }]);
});

test("a target domain keeps the results of that domain and of its subdomains", () => {
  const hosts = ["a.example", "b.example", "notb.example", "shop.b.example"];
  expect(hosts.filter((host) => isSameOrSubdomain(host, "b.example"))).toEqual(["b.example", "shop.b.example"]);
});
