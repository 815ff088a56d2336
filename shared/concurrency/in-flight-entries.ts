/**
 * What a process holds for each search that is under way, by an id or a hash: a map for entries that come and go a thousand
 * times a second.
 *
 * Not a `Map`: it leaves its earlier tables behind, each with a link to the next, and V8 frees the chain only in a full
 * garbage collection. Once one of those tables is old, everything that the map has held since is kept and copied as if it
 * lived long: the whole graph of objects of every search that has ended. An object without a prototype has one table.
 */
export class InFlightEntries<Entry> {
  readonly #entries: Record<string, Entry> = Object.create(null);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(key: string): Entry | undefined {
    return this.#entries[key];
  }

  set(key: string, entry: Entry): void {
    if (!(key in this.#entries)) this.#size += 1;
    this.#entries[key] = entry;
  }

  delete(key: string): void {
    if (!(key in this.#entries)) return;
    delete this.#entries[key];
    this.#size -= 1;
  }

  values(): Entry[] {
    return Object.values(this.#entries);
  }
}
