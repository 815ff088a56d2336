import { fileURLToPath } from "node:url";

/**
 * How the processes that tests start load code. That is most of a short program's time, and half of an API's or a worker's
 * start.
 */
export const codeLoading = {
  /** Where Node keeps the compiled code. */
  NODE_COMPILE_CACHE: fileURLToPath(new URL("../../../node_modules/.cache/compiled", import.meta.url)),
  /** No module is behind a link, and Node would look for one in each part of each path. */
  NODE_PRESERVE_SYMLINKS: "1",
};
