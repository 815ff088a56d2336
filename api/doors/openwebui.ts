import { z } from "zod";
import { depthMax } from "../../shared/query/depth.ts";
import { countUpTo, type Door, organicOf, requiredKeyword } from "./door.ts";

/** The external search of Open WebUI: POST to the address itself. */
export const openwebui: Door = {
  paths: { "/": ["POST"] },
  sent: "body",
  fields: z.object({ query: requiredKeyword, count: countUpTo(depthMax, 10) }).transform(({ query, count: part }) => ({
    search: { keyword: query, depth: part.depth },
    write: (answer) =>
      part.of(organicOf(answer)).map(({ title, url, description }) => ({ link: url, title, snippet: description })),
  })),
  names: { keyword: "query", depth: "count" },
  writeError: ({ code, message, details }, requestId) => ({ error: message, code, details, requestId }),
};
