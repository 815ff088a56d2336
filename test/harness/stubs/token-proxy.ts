import { request as ask } from "node:http";
import { listen, type Listening } from "./listen.ts";

/** A proxy that adds the token to every request, for programs that have no setting for one. */
export function startTokenProxy(target: string, token: string): Promise<Listening> {
  const { hostname, port } = new URL(target);
  return listen((request, response) => {
    const headers = { ...request.headers, authorization: `Bearer ${token}` };
    const onward = ask({ hostname, port, method: request.method, path: request.url, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    response.once("close", () => onward.destroy());
    request.pipe(onward);
  });
}
