/** The `NODE_OPTIONS` of the image, in the `Dockerfile`. */
export const imageNodeOptions = "--max-semi-space-size=32 --v8-pool-size=0";

/**
 * `NODE_OPTIONS` for the heap that a process has in a container of docker compose: those of the image, and for old objects
 * half of `mem_limit: 512m`, as Node chooses there.
 */
export const containerNodeOptions = `${imageNodeOptions} --max-old-space-size=256`;
