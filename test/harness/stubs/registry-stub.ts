import type { IncomingMessage, ServerResponse } from "node:http";
import { listen } from "./listen.ts";

const indexType = "application/vnd.oci.image.index.v1+json";

export type RegistryStub = {
  url: string;
  /** The digest of each image that it has, under `repository:tag`. One that is empty is not sent. */
  digests: Map<string, string>;
  /** How it asks for a login: for a token, as public registries do, unless a test sets another scheme. */
  scheme: string;
  close: () => Promise<void>;
};

/** A container registry for anonymous users: it wants a token for each repository, and names digests in a header. */
export async function startRegistryStub(): Promise<RegistryStub> {
  const digests: RegistryStub["digests"] = new Map();
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    const { pathname, searchParams } = new URL(request.url ?? "", stub.url);
    if (pathname === "/token") {
      const granted = searchParams.get("service") === "stub" ? searchParams.get("scope") : "nothing";
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ token: `for ${granted}` }));
      return;
    }
    const [, repository = "", tag = ""] = /^\/v2\/(.+)\/manifests\/(.+)$/.exec(pathname) ?? [];
    const scope = `repository:${repository}:pull`;
    if (request.headers.authorization !== `Bearer for ${scope}`) {
      const challenge = `${stub.scheme} realm="${stub.url}/token",service="stub",scope="${scope}"`;
      response.writeHead(401, { "www-authenticate": challenge }).end();
      return;
    }
    const digest = digests.get(`${repository}:${tag}`);
    if (request.method !== "HEAD" || digest === undefined) {
      response.writeHead(404).end();
      return;
    }
    // One that accepts no index gets the image of one platform, which has another digest.
    const isIndex = request.headers.accept?.includes(indexType);
    const named = isIndex ? digest : digest.replace(/.$/, "0");
    response.writeHead(200, { "content-type": indexType, ...(named && { "docker-content-digest": named }) }).end();
  };
  const stub: RegistryStub = { ...(await listen(answer)), digests, scheme: "Bearer" };
  return stub;
}
