import { expect, test } from "vitest";
import { isPublicAddress, targetProblem } from "../../../shared/webhooks/webhooks.ts";

/** Which addresses a payer may give for a webhook. Names are looked up at each delivery: test/worker/send-event.test.ts. */

const notPublic = [
  "0.0.0.0",
  "10.1.2.3",
  "100.64.0.1",
  "127.0.0.1",
  "127.255.255.254",
  "169.254.169.254",
  "172.16.0.1",
  "172.31.255.255",
  "192.0.0.1",
  "192.0.2.1",
  "192.88.99.1",
  "192.168.0.1",
  "198.18.0.1",
  "198.19.255.255",
  "198.51.100.1",
  "203.0.113.1",
  "224.0.0.1",
  "255.255.255.255",
  "::",
  "::1",
  "::127.0.0.1",
  "::ffff:127.0.0.1",
  "::ffff:10.0.0.1",
  "64:ff9b::7f00:1",
  "64:ff9b:1::1",
  "100::1",
  "2001::1",
  "2001:db8::1",
  "2002:7f00:1::1",
  "fc00::1",
  "fd12:3456::1",
  "fe80::1",
  "fe80::1%eth0",
  "fec0::1",
  "ff02::1",
  "no address",
];

test.each(notPublic)("%s is no address of the internet", (address) => {
  expect(isPublicAddress(address)).toBe(false);
});

test.each(["1.1.1.1", "8.8.8.8", "172.32.0.1", "193.0.0.1", "::ffff:8.8.8.8", "2606:4700::1111", "2a00:1450::1"])(
  "%s is an address of the internet",
  (address) => {
    expect(isPublicAddress(address)).toBe(true);
  },
);

const privateNetwork = "Expected an address of the internet, and not of a private network.";
const notHttps = "Expected a URL that begins with https://.";
test.each([
  { url: "https://hooks.example/serpmill?team=1", problem: undefined },
  { url: "https://hooks.example:8443/", problem: undefined },
  { url: "https://8.8.8.8/", problem: undefined },
  { url: "http://hooks.example/", problem: notHttps },
  { url: "ftp://hooks.example/", problem: notHttps },
  { url: "javascript:alert(1)", problem: notHttps },
  { url: "hooks.example", problem: "Expected a URL such as https://example.com/hook." },
  { url: "https://hooks.example:99999/", problem: "Expected a URL such as https://example.com/hook." },
  { url: `https://hooks.example/${"a".repeat(2_000)}`, problem: "Expected a URL of at most 2000 characters." },
  { url: "https://ada:secret@hooks.example/", problem: "Expected a URL without a user name or password." },
  { url: "https://hooks.example/#top", problem: "Expected a URL without a part behind #." },
  // The notations of an address that browsers know.
  { url: "https://127.0.0.1/", problem: privateNetwork },
  { url: "https://127.1/", problem: privateNetwork },
  { url: "https://0x7f000001/", problem: privateNetwork },
  { url: "https://2130706433/", problem: privateNetwork },
  { url: "https://017700000001/", problem: privateNetwork },
  { url: "https://[::1]/", problem: privateNetwork },
  { url: "https://[::ffff:169.254.169.254]/", problem: privateNetwork },
])("$url: $problem", ({ url, problem }) => {
  expect(targetProblem(url, "public")).toBe(problem);
});

test("an operator who allows any target allows http and private networks, and one who allows none gets no webhook", () => {
  expect(targetProblem("http://10.0.0.1:8080/hook", "any")).toBeUndefined();
  expect(targetProblem("ftp://10.0.0.1/", "any")).toBe(notHttps);
  expect(targetProblem("https://hooks.example/", "none")).toBe("The operator of this service has turned webhooks off.");
});
