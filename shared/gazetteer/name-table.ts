import { foldLocationPart } from "./fold-name.ts";

/** Each slot takes 8 bytes. The names of the package fill 465,000. */
const slotsCount = 655_360;
/** With more slots full, lookups get slow. */
const shareFullMax = 0.85;

/** Added to the number of a city, marks its own name among its names. */
const ownMark = 2 ** 31;

/** The codes of airports are among the names of cities, and `ZOU` is in Germany. */
export const airportCode = /^[A-Z]{3,4}$/;

/**
 * Maps names to cities without keeping the names: for each name of a city it keeps a 52-bit hash of the folded name and the
 * number of the city. Half a million names take 5 MB, and a text that names no city matches with a probability of 1e-9.
 */
export class NameTable {
  static readonly bytes = 8 * slotsCount;
  /** 0 marks an empty slot. */
  readonly #hashes: Int32Array;
  readonly #cities: Uint32Array;
  #full = 0;

  /** @param tables at its start is the table, empty or filled. */
  constructor(tables: ArrayBuffer) {
    this.#hashes = new Int32Array(tables, 0, slotsCount);
    this.#cities = new Uint32Array(tables, 4 * slotsCount, slotsCount);
  }

  /** Adds the names of a city, separated by commas or tabs. Its own one is the first, before a tab. */
  add(names: string, city: number): void {
    const [own] = names.split("\t");
    for (const name of new Set(names.split(/[,\t]/))) {
      const folded = airportCode.test(name) ? "" : foldLocationPart(name);
      if (folded !== "") this.#insert(folded, city, name === own);
    }
  }

  /** The numbers of the cities that have a name, which is folded, and whether it is their own. */
  find(folded: string): { city: number; isOwnName: boolean }[] {
    const { firstSlot, hash } = hashesOf(folded);
    const found: { city: number; isOwnName: boolean }[] = [];
    for (let slot = firstSlot; this.#hashes[slot] !== 0; slot = (slot + 1) % slotsCount) {
      if (this.#hashes[slot] !== hash) continue;
      const marked = this.#cities[slot] ?? 0;
      found.push({ city: marked % ownMark, isOwnName: marked >= ownMark });
    }
    return found;
  }

  /** The first of two names that are the same when folded stays. */
  #insert(folded: string, city: number, isOwnName: boolean): void {
    const { firstSlot, hash } = hashesOf(folded);
    let slot = firstSlot;
    for (; this.#hashes[slot] !== 0; slot = (slot + 1) % slotsCount) {
      if (this.#hashes[slot] === hash && (this.#cities[slot] ?? 0) % ownMark === city) return;
    }
    this.#hashes[slot] = hash;
    this.#cities[slot] = isOwnName ? city + ownMark : city;
    this.#full += 1;
    if (this.#full > slotsCount * shareFullMax)
      throw new Error("The cities have more names than the table has room for.");
  }
}

/** Two hashes: one selects the slot, the other tells the names apart. */
function hashesOf(folded: string): { firstSlot: number; hash: number } {
  let one = 0x811c9dc5;
  let other = 0x1b873593;
  for (let at = 0; at < folded.length; at += 1) {
    const unit = folded.charCodeAt(at);
    one = Math.imul(one ^ unit, 0x01000193);
    other = Math.imul(other ^ unit, 0x5bd1e995);
    other ^= other >>> 15;
  }
  return { firstSlot: ((one ^ (one >>> 16)) >>> 0) % slotsCount, hash: other || 1 };
}
