import { type Fields, isObject, readRows } from "../read-rows.ts";

/** An item of the page. Only its type is known to exist. */
export type Item = Fields & { readonly type: string };

/** The items that can be read, and the number of the others. */
export function readableItems(rows: readonly unknown[]): { items: Item[]; unreadableRows: number } {
  const { found, unreadableRows } = readRows(rows, (row) => (isReadable(row) ? row : undefined));
  return { items: found, unreadableRows };
}

function isReadable(row: unknown): row is Item {
  return isObject(row) && typeof row["type"] === "string" && row["type"] !== "" && isComplete(row);
}

/** An organic result needs a URL and a title. A title may be null, their value for none; a missing one is a change of the format. */
function isComplete({ type, title, url }: Fields): boolean {
  return type !== "organic" || (typeof url === "string" && (typeof title === "string" || title === null));
}
