import { type Reply, reply } from "../../harness/stubs/serper-stub.ts";

const pageResults = 10;
const textBytes = 9_990;

/**
 * Ten organic results on every page, with texts of the maximum length. They make the largest possible answer of 100 results,
 * 2 MB, which does not fit into the socket buffers of a caller on the same machine that does not read. Over a network buffers
 * take 100 kB, less than an ordinary answer.
 */
export const largestAnswer: Reply = (request, response) => {
  const page = Number(request.body["page"]);
  const organic = Array.from({ length: pageResults }, (_, row) => ({
    title: `Pump ${page}.${row + 1} `.padEnd(textBytes, "pump "),
    link: `https://pumps.example/${page}/${row + 1}`,
    snippet: "pump ".repeat(textBytes / 5),
    position: row + 1,
  }));
  reply(200, { searchParameters: request.body, organic, credits: 1 })(request, response);
};
