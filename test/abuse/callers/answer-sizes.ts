import { type Reply, reply } from "../../harness/stubs/serper-stub.ts";

const pageResults = 10;

/** Ten organic results on every page, with a snippet of this length each, and a title if it is to be longer. */
export const longSnippets =
  (snippetBytes: number, titleBytes = 0): Reply =>
  (request, response) => {
    const page = Number(request.body["page"]);
    const organic = Array.from({ length: pageResults }, (_, row) => ({
      title: `Pump ${page}.${row + 1} `.padEnd(titleBytes, "pump "),
      link: `https://pumps.example/${page}/${row + 1}`,
      snippet: "pump ".repeat(snippetBytes / 5),
      position: row + 1,
    }));
    reply(200, { searchParameters: request.body, organic, credits: 1 })(request, response);
  };

/**
 * Texts as long as they may be, which make an answer of 100 results as large as one may be, 2 MB: more than the sockets'
 * buffers of one machine take of a caller that does not read. Over a network, where they take 100 kB, an ordinary answer is.
 */
export const largestAnswer = longSnippets(9_990, 9_990);
