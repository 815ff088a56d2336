/**
 * How many results, from the first one on, fit into so many bytes of JSON. The last ones are left out, so that those that stay
 * keep their ranks.
 */
export function countFitting(results: readonly unknown[], bytesMax: number): number {
  let bytes = 0;
  const beyond = results.findIndex((result) => {
    bytes += Buffer.byteLength(JSON.stringify(result)) + 1;
    return bytes > bytesMax;
  });
  return beyond < 0 ? results.length : beyond;
}
