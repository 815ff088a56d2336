import { reply } from "../../harness/stubs/serper-stub.ts";
import type { Attack } from "../attack.ts";

const target = "https://bank.example/";
const lookalikes = [
  "https://google.evil.com/url?q=",
  "https://www.google.com.evil.example/url?q=",
  "https://google.com@evil.example/url?q=",
  "https://evil.example/www.google.com/url?q=",
  "https://google.co/url?q=",
  "https://google.com.:8443/url?q=",
  "https://notgoogle.com/url?q=",
  "https://GOOGLE.EVIL.COM/url?q=",
  "https://google.com%2eevil.example/url?q=",
  "https://google.com\\.evil.example/url?q=",
];

/** A page ranks under its own host and tries to be shown as the host in its redirect parameter. */
export const lookalikeHosts: Attack = {
  name: "lookalike-hosts",
  tried: `pages on ${lookalikes.length} hosts that imitate Google's redirect, to ${target}`,
  run: async ({ service, provider }) => {
    const organic = lookalikes.map((prefix, at) => ({ title: prefix, link: prefix + target, position: at + 1 }));
    provider.otherwise = reply(200, { organic, credits: 1 });
    const { token } = await service.organization();
    const { body } = await service.search(token, { keyword: "bank" });
    const unwrapped: string[] = body.results
      .filter(({ url, domain }: Record<string, string>) => url === target || domain === "bank.example")
      .map(({ title }: Record<string, string>) => title);
    return [
      {
        promised: "only Google's own hosts are unwrapped",
        seen: unwrapped.length === 0 ? `${body.results.length} results under their own hosts` : unwrapped.join(", "),
        held: unwrapped.length === 0 && body.results.length > 0,
      },
    ];
  },
};
