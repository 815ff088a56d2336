import { typeid } from "typeid-js";

/** The kinds of things that have an id of their own; the word stands in front of it. */
export type IdPrefix = "req" | "org" | "tok" | "grant" | "api" | "worker";

/** A new TypeID (https://github.com/jetify-com/typeid): the prefix, `_` and 26 base-32 characters of a UUIDv7. */
export function newId(prefix: IdPrefix): string {
  return typeid(prefix).toString();
}
