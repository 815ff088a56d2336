/** What an adapter leaves out of its provider's answers on purpose. */
export interface Omission {
  /**
   * The field, with everything in it. Names are joined with dots and lists are not marked: `ads.tracking_link`. `*` stands for any
   * part of a name, `**` for any fields around it: `**.thumbnail`, `**.*_link`.
   */
  path: string;
  reason: string;
}

/** Whether one of the omissions covers the field at this path: `local_results.places[].thumbnail`. */
export function coverWith(omissions: readonly Omission[]): (path: string) => boolean {
  const patterns = omissions.map(({ path }) => toPattern(path));
  return (path) => {
    const names = path.replaceAll("[]", "");
    return patterns.some((pattern) => pattern.test(names));
  };
}

function toPattern(path: string): RegExp {
  const names = path.split(".").map((name) => {
    if (name === "**") return "(?:[^.]+\\.)*";
    return `${name.replaceAll("*", "[^.]*")}(?:\\.|$)`;
  });
  return new RegExp(`^${names.join("")}`);
}
