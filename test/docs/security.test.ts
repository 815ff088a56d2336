import { expect, test } from "vitest";
import { readConfig } from "../../shared/config.ts";
import { exists, places, sources } from "../harness/assertions/sources.ts";
import { codesIn, page, tableRows } from "./markdown.ts";

const security = page("docs/security.md");

/** The numbers of levels 1 and 2 of ASVS 5.0. */
const asvs = `
  1.1.1-2 1.2.1-9 1.3.1-11 1.4.1-3 1.5.1-2 2.1.1-3 2.2.1-3 2.3.1-4 2.4.1 3.2.1-2 3.3.1-4 3.4.1-6 3.5.1-5 3.7.1-2 4.1.1-3
  4.2.1 4.3.1-2 4.4.1-4 5.1.1 5.2.1-3 5.3.1-2 5.4.1-3 6.1.1-3 6.2.1-12 6.3.1-4 6.4.1-4 6.5.1-5 6.6.1-3 6.8.1-4 7.1.1-3
  7.2.1-4 7.3.1-2 7.4.1-5 7.5.1-2 7.6.1-2 8.1.1-2 8.2.1-3 8.3.1 8.4.1 9.1.1-3 9.2.1-4 10.1.1-2 10.2.1-2 10.3.1-4 10.4.1-11
  10.5.1-5 10.6.1-2 10.7.1-3 11.1.1-2 11.2.1-3 11.3.1-3 11.4.1-4 11.5.1 11.6.1 12.1.1-3 12.2.1-2 12.3.1-4 13.1.1 13.2.1-5
  13.3.1-2 13.4.1-5 14.1.1-2 14.2.1-4 14.3.1-3 15.1.1-3 15.2.1-3 15.3.1-7 16.1.1 16.2.1-5 16.3.1-4 16.4.1-3 16.5.1-3 17.1.1
  17.2.1-4 17.3.1-2`;

/** The items of a list such as `1.2.1, 1.2.3-4`. */
function itemsOf(list: string): string[] {
  return list
    .trim()
    .split(/[,\s]+/)
    .flatMap((entry) => {
      const [, section = "", first = "", last = first] = /^(\d+\.\d+)\.(\d+)(?:-(\d+))?$/.exec(entry) ?? [];
      if (section === "") throw new Error(`"${entry}" is no item`);
      return Array.from({ length: Number(last) - Number(first) + 1 }, (_, at) => `${section}.${Number(first) + at}`);
    });
}

const rows = tableRows(security, "ASVS");

test("each item of ASVS levels 1 and 2 is met, not met with a reason, or does not apply, once", () => {
  const listed = rows.flatMap((row) => itemsOf(row.ASVS ?? ""));
  expect(listed.toSorted()).toEqual(itemsOf(asvs).toSorted());
  expect(rows.filter((row) => row.why === "")).toEqual([]);
});

test("each item that is met, and each of the ten risks, is shown by a file or setting that exists, or by a page", () => {
  const known = new Set(
    Object.keys(
      readConfig({ DATABASE_URL: "postgres://host/name", REDIS_URL: "redis://host", SERP_PROVIDERS: "sandbox" }),
    ),
  );
  const shown = [...rows, ...tableRows(security, "risk")].filter((row) => row["shown by"] !== undefined);
  expect(tableRows(security, "risk")).toHaveLength(10);
  const unproven = shown.flatMap((row) => {
    const proof = row["shown by"] ?? "";
    const names = codesIn(proof);
    const missing = names.filter((name) => !(name.includes("/") ? exists(name) : known.has(name)));
    const isShown = names.length > 0 || proof.includes(".md");
    return isShown ? missing : [row.ASVS ?? row.risk];
  });
  expect(unproven).toEqual([]);
});

const product = sources("{api,worker,commands,shared}/**/*.{ts,js}");

test("the table of cryptography has every file that hashes or makes secrets, but for the private servers of one machine", () => {
  const uses =
    /\b(createHash|createHmac|pbkdf2Sync|scryptSync|randomBytes|randomInt|createCipheriv|createSign|hash)\b.*"node:crypto"/;
  const found = product.filter(({ path, text }) => uses.test(text) && !path.startsWith("local/"));
  const listed = new Set(tableRows(security, "what").flatMap((row) => codesIn(row.where)));
  expect(found.map(({ path }) => path).filter((path) => !listed.has(path))).toEqual([]);
  expect(places(product, /"(md5|sha1)"/i, ({ lines }) => lines)).toEqual([]);
});

test("the pages keep nothing in the browser's storage", () => {
  expect(places(product, /\b(localStorage|sessionStorage|indexedDB|document\.cookie)\b/)).toEqual([]);
});
