/** A `%` that encodes no byte stands for itself. */
const encodedBytes = /(?:%[\da-f]{2})+/gi;

/** Whether the bytes in a URL-encoded text are UTF-8. The readers of such texts repair what is not, to another text. */
export function isEncodedUtf8(text: string): boolean {
  try {
    for (const [bytes] of text.matchAll(encodedBytes)) decodeURIComponent(bytes);
    return true;
  } catch {
    return false;
  }
}
