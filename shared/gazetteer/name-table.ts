import { foldLocationPart } from "./fold-name.ts";

/** Each slot takes 8 bytes. The names of the package fill 465,000. */
const slotsCount = 655_360;
/** With more slots full, lookups get slow. */
const shareFullMax = 0.85;
/** A caller's location has at most 255 code points. Fullwidth and Hangul letters fold to several units each. */
const unitsMax = 8_192;

const space = 32;
const tab = 9;
const comma = 44;
const asciiMax = 127;

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
  /** The name that was folded last, as UTF-16 units, and the start of its last word. */
  readonly #units = new Uint16Array(unitsMax);
  #length = 0;
  #wordStart = 0;
  #slot = 0;
  #hash = 0;
  /** What code points fold to, kept only while the table is filled: callers can send any of a million. */
  #folded: Map<number, string> | undefined = new Map();
  readonly #foldedAscii = Uint16Array.from({ length: asciiMax + 1 }, (_, code) => {
    const folded = foldLocationPart(String.fromCharCode(code));
    return folded.length === 1 ? folded.charCodeAt(0) : space;
  });

  /** @param tables at its start is the table, empty or filled. */
  constructor(tables: ArrayBuffer) {
    this.#hashes = new Int32Array(tables, 0, slotsCount);
    this.#cities = new Uint32Array(tables, 4 * slotsCount, slotsCount);
  }

  /** Adds the names of a city: UTF-8, separated by commas or tabs, between two offsets. */
  add(bytes: Uint8Array, start: number, end: number, city: number): void {
    let from = start;
    for (let at = start; at <= end; at += 1) {
      if (at < end && bytes[at] !== comma && bytes[at] !== tab) continue;
      if (!isAirportCode(bytes, from, at)) {
        this.#fold(bytes, from, at);
        if (this.#length > 0) this.#insert(city);
      }
      from = at + 1;
    }
  }

  /** Ends the filling. */
  complete(): void {
    this.#folded = undefined;
  }

  /** The numbers of the cities that have a name, in any case, with or without accents. */
  find(name: string): number[] {
    const bytes = Buffer.from(name);
    this.#fold(bytes, 0, bytes.length);
    const found: number[] = [];
    for (let slot = this.#slot; this.#hashes[slot] !== 0; slot = (slot + 1) % slotsCount) {
      if (this.#hashes[slot] === this.#hash) found.push(this.#cities[slot] ?? 0);
    }
    return found;
  }

  #insert(city: number): void {
    let slot = this.#slot;
    for (; this.#hashes[slot] !== 0; slot = (slot + 1) % slotsCount) {
      if (this.#hashes[slot] === this.#hash && this.#cities[slot] === city) return;
    }
    this.#hashes[slot] = this.#hash;
    this.#cities[slot] = city;
    this.#full += 1;
    if (this.#full > slotsCount * shareFullMax)
      throw new Error("The cities have more names than the table has room for.");
  }

  /** Folds as {@link foldLocationPart} does, but 20 times as fast, then hashes. */
  #fold(bytes: Uint8Array, start: number, end: number): void {
    this.#length = 0;
    this.#wordStart = 0;
    for (let at = start; at < end; ) {
      const first = bytes[at] ?? 0;
      if (first <= asciiMax) {
        this.#append(this.#foldedAscii[first] ?? space);
        at += 1;
        continue;
      }
      const following = first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
      let codePoint = first & (0x3f >> following);
      for (let next = 1; next <= following; next += 1) codePoint = (codePoint << 6) | ((bytes[at + next] ?? 0) & 0x3f);
      const folded = this.#foldCodePoint(codePoint);
      for (let unit = 0; unit < folded.length; unit += 1) this.#append(folded.charCodeAt(unit));
      at += following + 1;
    }
    this.#endWord();
    if (this.#units[this.#length - 1] === space) this.#length -= 1;
    this.#setHash();
  }

  #foldCodePoint(codePoint: number): string {
    const known = this.#folded?.get(codePoint);
    if (known !== undefined) return known;
    const letter = String.fromCodePoint(codePoint);
    // An accent that stands alone is removed; everything else that is no letter separates words.
    const folded = foldLocationPart(letter) || (/\p{M}/u.test(letter) ? "" : " ");
    this.#folded?.set(codePoint, folded);
    return folded;
  }

  #append(unit: number): void {
    if (unit === space) {
      if (this.#length === this.#wordStart) return;
      this.#endWord();
      this.#wordStart = this.#length + 1;
    }
    if (this.#length === unitsMax) return;
    this.#units[this.#length] = unit;
    this.#length += 1;
  }

  /** `saint` and `sainte` become `st` and `ste`. */
  #endWord(): void {
    const at = this.#wordStart;
    const letters = this.#length - at;
    if (letters < 5 || letters > 6 || this.#units[at] !== 115) return;
    const word = String.fromCharCode(...this.#units.subarray(at, this.#length));
    if (word !== "saint" && word !== "sainte") return;
    this.#units[at + 1] = 116;
    this.#units[at + 2] = 101;
    this.#length -= 3;
  }

  /** Two hashes: one selects the slot, the other tells the names apart. */
  #setHash(): void {
    let one = 0x811c9dc5;
    let other = 0x1b873593;
    for (let at = 0; at < this.#length; at += 1) {
      const unit = this.#units[at] ?? 0;
      one = Math.imul(one ^ unit, 0x01000193);
      other = Math.imul(other ^ unit, 0x5bd1e995);
      other ^= other >>> 15;
    }
    this.#slot = ((one ^ (one >>> 16)) >>> 0) % slotsCount;
    this.#hash = other || 1;
  }
}

/** Three or four capital letters. They are among the names of cities, and `ZOU` is in Germany. */
function isAirportCode(bytes: Uint8Array, start: number, end: number): boolean {
  if (end - start < 3 || end - start > 4) return false;
  for (let at = start; at < end; at += 1) {
    const byte = bytes[at] ?? 0;
    if (byte < 65 || byte > 90) return false;
  }
  return true;
}
