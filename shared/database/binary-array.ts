const byteaOid = 17;
const nullLength = -1;

/**
 * A parameter of type `bytea[]` in Postgres' binary format: dimensions, whether there are nulls, type, length and first index,
 * then each element after its length. node-postgres would write an array of buffers as hexadecimal text, twice as long.
 */
export function toByteaArray(elements: readonly (Buffer | null)[]): Buffer {
  const hasNulls = elements.includes(null);
  const parts = [int32s(1, Number(hasNulls), byteaOid, elements.length, 1)];
  for (const element of elements) {
    parts.push(int32s(element?.length ?? nullLength));
    if (element) parts.push(element);
  }
  return Buffer.concat(parts);
}

function int32s(...values: number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [at, value] of values.entries()) bytes.writeInt32BE(value, 4 * at);
  return bytes;
}
