import { type Reply, reply } from "../../harness/stubs/serper-stub.ts";

const pageResults = 10;

/** Ten organic results on every page, with a snippet of this length each. */
export const longSnippets =
  (snippetBytes: number): Reply =>
  (request, response) => {
    const page = Number(request.body["page"]);
    const organic = Array.from({ length: pageResults }, (_, row) => ({
      title: `Pump ${page}.${row + 1}`,
      link: `https://pumps.example/${page}/${row + 1}`,
      snippet: "pump ".repeat(snippetBytes / 5),
      position: row + 1,
    }));
    reply(200, { searchParameters: request.body, organic, credits: 1 })(request, response);
  };

/**
 * Snippets that make an answer of 100 results larger than what the sockets' buffers of one machine take, about 3 MB. Over
 * a network, where they take 100 kB, an ordinary answer is.
 */
export const beyondBuffers = longSnippets(60_000);
