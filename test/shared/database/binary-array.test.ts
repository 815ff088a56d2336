import { expect, test } from "vitest";
import { toByteaArray } from "../../../shared/database/binary-array.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import { freshDatabase } from "../../harness/servers/servers.ts";

test.each([
  { name: "bytes of any value", elements: [Buffer.from([0, 255, 92, 39]), Buffer.from("text")] },
  { name: "elements that are null or empty", elements: [null, Buffer.alloc(0), Buffer.from("x"), null] },
  { name: "one element of a megabyte", elements: [Buffer.alloc(1_000_000, 7)] },
])("Postgres reads $name as they were sent", async ({ elements }) => {
  const { url, drop } = await freshDatabase();
  try {
    const text = "select element from unnest($1::bytea[]) with ordinality as a (element, place) order by place";
    const { rows } = await asOwner(url, text, [toByteaArray(elements)]);
    expect(rows.map(({ element }) => element)).toEqual(elements);
  } finally {
    await drop();
  }
});
