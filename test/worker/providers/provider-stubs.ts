import type { IncomingMessage, ServerResponse } from "node:http";
import { type ProviderName, providerNames } from "../../../shared/config.ts";
import { listen } from "../../harness/stubs/listen.ts";
import { contractCases, type ContractCase } from "./contract-cases.ts";

/** What a stub does with a request instead of its usual answer. */
export type Reply = (response: ServerResponse) => void;

export type ProviderStubs = {
  /** The settings that send all providers to this server. */
  settings: Record<string, string>;
  /** The requests that arrived, in order: `serper GET /account`. */
  requests: string[];
  /** Replies that replace the usual one, by provider. */
  replies: Map<ProviderName, Reply>;
  close: () => Promise<void>;
};

/** One server with the wire format of every provider: accounts, searches, and refusals of a wrong key. */
export async function startProviderStubs(): Promise<ProviderStubs> {
  const requests: string[] = [];
  const replies: ProviderStubs["replies"] = new Map();
  const { url, close } = await listen((request, response) => {
    const [, name, path = ""] = /^\/(\w+)([^?]*)/.exec(request.url ?? "") ?? [];
    const provider = providerNames.find((known) => known === name);
    if (provider === undefined) throw new Error("The path of a stub must begin with the name of a provider.");
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

/** Replies with JSON, or with a text as it is. */
export function reply(status: number, body: unknown): Reply {
  return (response) => void response.writeHead(status).end(typeof body === "string" ? body : JSON.stringify(body));
}

function usualReply({ secret, wrongKey, account, page }: ContractCase, path: string, request: IncomingMessage): Reply {
  const sent = JSON.stringify(secret?.in === "url" ? request.url : request.headers);
  const [status, body] = wrongKey ?? [500, ""];
  if (!sent.includes(secret?.text ?? "")) return reply(status, body);
  return reply(200, request.method === "GET" && path === account?.path ? account.answer : page);
}
