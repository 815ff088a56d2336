import type { Request } from "express";
import type { Config, DoorName } from "../../shared/config.ts";

/** A request at a door: its path is counted from the door's root, or from the token in the address. */
export interface Entrance {
  name: DoorName;
  path: string;
  /** The token of an address such as `/searxng/k/<token>/search`, for clients that send none. */
  token?: string | undefined;
}

/** What precedes a token in an address. */
const tokenMark = "k";

/** Where the open doors are: each under a path of its name, and those with a host of their own there as well. */
export class Entrances {
  readonly #names: ReadonlyMap<string, DoorName>;
  readonly #hosts: ReadonlyMap<string, DoorName>;

  constructor({ COMPAT_DOORS: open, COMPAT_HOSTS: hosts }: Pick<Config, "COMPAT_DOORS" | "COMPAT_HOSTS">) {
    this.#names = new Map(open.map((name) => [name, name]));
    this.#hosts = new Map(
      hosts.flatMap((pair) =>
        open.filter((name) => pair.startsWith(`${name}=`)).map((name) => [pair.slice(name.length + 1), name]),
      ),
    );
  }

  /** @returns undefined for a request of the API itself. The host of a door serves its door and nothing else. */
  enter(request: Request): Entrance | undefined {
    // Users paste addresses with a trailing slash, and clients add another.
    const segments = request.path.split("/").filter((segment) => segment !== "");
    const byHost = this.#hosts.get(hostOf(request));
    const name = byHost ?? (request.path.startsWith("//") ? undefined : this.#names.get(segments.shift() ?? ""));
    const [mark, token, ...rest] = segments;
    if (name && mark === tokenMark && token !== undefined) return { name, path: `/${rest.join("/")}`, token };
    return name && { name, path: `/${segments.join("/")}` };
  }
}

/** The host that the caller addressed, in lower case, without port and without the dot of a complete name. */
const hostOf = ({ headers }: Request): string =>
  (headers.host ?? "").toLowerCase().replace(/:\d*$/, "").replace(/\.$/, "");
