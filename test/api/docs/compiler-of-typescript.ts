// TypeScript 7 has no compiler to be called from a program any more, and openapi-typescript calls one. This is an older
// one that came out as a library, without a second command `tsc` beside ours.
export { ts as default } from "@ts-morph/common";
