/** All states found so far, each with the state that led to it first: rows of words, and a hash table. */
export class KnownStates {
  count = 0;
  readonly #width: number;
  readonly #chunks: Uint32Array[] = [];
  readonly #parents: Int32Array[] = [];
  // Open addressing. An entry is the number of a state + 1; 0 is an empty slot.
  #table = new Int32Array(1 << 16);
  #hashes = new Int32Array(1 << 16);

  constructor(width: number) {
    this.#width = width;
  }

  /** Adds a state. @returns its number, or -1 if it is known. */
  add(words: Uint32Array, parent: number): number {
    const hash = hashOf(words);
    const slot = this.#slotOf(words, hash);
    if (this.#table[slot] !== 0) return -1;
    const number = this.count;
    this.count += 1;
    const at = number & chunkMask;
    if (at === 0) {
      this.#chunks.push(new Uint32Array(this.#width << chunkBits));
      this.#parents.push(new Int32Array(1 << chunkBits));
    }
    this.#chunks[number >> chunkBits]?.set(words, at * this.#width);
    const parents = this.#parents[number >> chunkBits];
    if (parents) parents[at] = parent;
    this.#table[slot] = number + 1;
    this.#hashes[slot] = hash;
    if (this.count * 2 > this.#table.length) this.#grow();
    return number;
  }

  /** The number of a state, or -1 if it is not known. */
  find(words: Uint32Array): number {
    return (this.#table[this.#slotOf(words, hashOf(words))] ?? 0) - 1;
  }

  read(number: number, into: Uint32Array): void {
    const chunk = this.#chunks[number >> chunkBits] ?? into;
    const from = (number & chunkMask) * this.#width;
    for (let at = 0; at < this.#width; at += 1) into[at] = chunk[from + at] ?? 0;
  }

  parentOf(number: number): number {
    return this.#parents[number >> chunkBits]?.[number & chunkMask] ?? -1;
  }

  #slotOf(words: Uint32Array, hash: number): number {
    const mask = this.#table.length - 1;
    let slot = hash & mask;
    for (;;) {
      const entry = this.#table[slot] ?? 0;
      if (entry === 0 || (this.#hashes[slot] === hash && this.#isSame(entry - 1, words))) return slot;
      slot = (slot + 1) & mask;
    }
  }

  #isSame(number: number, words: Uint32Array): boolean {
    const chunk = this.#chunks[number >> chunkBits] ?? words;
    const from = (number & chunkMask) * this.#width;
    for (let at = 0; at < this.#width; at += 1) if (chunk[from + at] !== words[at]) return false;
    return true;
  }

  #grow(): void {
    const [table, hashes] = [this.#table, this.#hashes];
    this.#table = new Int32Array(table.length * 2);
    this.#hashes = new Int32Array(table.length * 2);
    const mask = this.#table.length - 1;
    for (let at = 0; at < table.length; at += 1) {
      const entry = table[at] ?? 0;
      if (entry === 0) continue;
      const hash = hashes[at] ?? 0;
      let slot = hash & mask;
      while (this.#table[slot] !== 0) slot = (slot + 1) & mask;
      this.#table[slot] = entry;
      this.#hashes[slot] = hash;
    }
  }
}

const chunkBits = 14;
const chunkMask = (1 << chunkBits) - 1;

/** Spreads the few used bits of each word over all 32. States with equal hashes are compared word by word. */
function hashOf(words: Uint32Array): number {
  let hash = 0x9e3779b9;
  for (const word of words) {
    hash = Math.imul(hash ^ word, 0x85ebca6b);
    hash ^= hash >>> 15;
  }
  hash = Math.imul(hash, 0xc2b2ae35);
  return hash ^ (hash >>> 13);
}
