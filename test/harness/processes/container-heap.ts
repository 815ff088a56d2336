/** What the image sets for its processes, in the `Dockerfile`. */
export const imageEnvironment = {
  NODE_OPTIONS: "--max-semi-space-size=32 --v8-pool-size=0",
  MALLOC_MMAP_THRESHOLD_: "1048576",
  UV_THREADPOOL_SIZE: "12",
};

/**
 * The same with the heap that a process has in a container of docker compose: for old objects half of `mem_limit: 512m`, as Node
 * chooses there.
 */
export const containerEnvironment = {
  ...imageEnvironment,
  NODE_OPTIONS: `${imageEnvironment.NODE_OPTIONS} --max-old-space-size=256`,
};
