// openapi-typescript needs TypeScript's compiler API, which TypeScript 7 no longer has. This package is an older version
// that is published as a library, so it does not install a second `tsc` command.
export { ts as default } from "@ts-morph/common";
