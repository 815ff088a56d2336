import { fileURLToPath } from "node:url";

/**
 * Where Node keeps the compiled code of the processes that tests start. Loading code is most of a short program's time,
 * and half of an API's or a worker's start.
 */
export const compileCache = {
  NODE_COMPILE_CACHE: fileURLToPath(new URL("../../../node_modules/.cache/compiled", import.meta.url)),
};
