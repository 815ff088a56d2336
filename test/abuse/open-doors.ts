export const patienceMs = 100;

/** Settings with which attacks find an impatient door. */
export const openDoors = {
  COMPAT_DOORS: "searxng",
  COMPAT_PATIENCE_MS: `searxng=${patienceMs}`,
};

/** A GET with a host of the attacker's choice. */
export const getAt = (host: string, path: string, headers: readonly string[] = []) =>
  [`GET ${path} HTTP/1.1`, `host: ${host}`, ...headers, "", ""].join("\r\n");
