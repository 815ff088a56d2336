/** The first code points of a text. 64 is the most that a message repeats of what the caller sent. */
export function truncate(text: string, charactersMax = 64): string {
  let end = 0;
  let characters = 0;
  for (const character of text) {
    if (characters === charactersMax) break;
    end += character.length;
    characters += 1;
  }
  return text.slice(0, end).toWellFormed();
}
