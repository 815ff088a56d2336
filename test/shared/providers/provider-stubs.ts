import type { IncomingMessage, ServerResponse } from "node:http";
import { type ProviderName, providerNames } from "../../../shared/config.ts";
import { listen } from "../../harness/stubs/listen.ts";
import { contractCases, type ContractCase } from "./contract-cases.ts";

/** What a stub does with one request in place of its usual answer. */
export type Reply = (response: ServerResponse) => void;

export type ProviderStubs = {
  /** All that the providers need to be asked here. */
  settings: Record<string, string>;
  /** The requests that arrived, in order: `serper GET /account`. */
  requests: string[];
  /** What happens instead, while it stands here. */
  replies: Map<ProviderName, Reply>;
  close: () => Promise<void>;
};

/** Real servers with the wire format of every provider, in one: accounts and searches, and refusals of a wrong key. */
export async function startProviderStubs(): Promise<ProviderStubs> {
  const requests: string[] = [];
  const replies: ProviderStubs["replies"] = new Map();
  const { url, close } = await listen((request, response) => {
    const [, name, path = ""] = /^\/(\w+)([^?]*)/.exec(request.url ?? "") ?? [];
    const provider = providerNames.find((known) => known === name);
    if (provider === undefined) throw new Error("A stub stands for one of the providers.");
    requests.push(`${provider} ${request.method} ${path}`);
    (replies.get(provider) ?? usualReply(contractCases[provider], path, request))(response);
  });
  const settings = providerNames.flatMap((name) =>
    Object.entries(contractCases[name].settings).map(([setting, value]) =>
      setting.endsWith("_BASE_URL") ? [setting, `${url}/${name}`] : [setting, value],
    ),
  );
  return { settings: Object.fromEntries(settings), requests, replies, close };
}

/** An answer as JSON, or as the text that it is. */
export function reply(status: number, body: unknown): Reply {
  return (response) => void response.writeHead(status).end(typeof body === "string" ? body : JSON.stringify(body));
}

function usualReply({ secret, failures, account, page }: ContractCase, path: string, request: IncomingMessage): Reply {
  const sent = JSON.stringify(secret?.in === "url" ? request.url : request.headers);
  const [status, body] = failures[0] ?? [500, ""];
  if (!sent.includes(secret?.text ?? "")) return reply(status, body);
  return reply(200, request.method === "GET" && path === account?.path ? account.answer : page);
}
