import { type Reply, reply } from "../../harness/stubs/serper-stub.ts";

const pageResults = 10;

/** Ten organic results on every page, with snippets and titles of at least this length. */
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
 * Texts of the maximum length. They make the largest possible answer of 100 results, 2 MB, which does not fit into the socket
 * buffers of a caller on the same machine that does not read. Over a network buffers take 100 kB, less than an ordinary answer.
 */
export const largestAnswer = longSnippets(9_990, 9_990);
