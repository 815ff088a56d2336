/** The host that is a door's own. */
export const doorHost = "searxng.serp.example";
export const patienceMs = 100;

/** Settings with which attacks on doors find two open. Only the first one is impatient. */
export const openDoors = {
  COMPAT_DOORS: "searxng,tavily",
  COMPAT_HOSTS: `searxng=${doorHost}`,
  COMPAT_PATIENCE_MS: `searxng=${patienceMs}`,
};

/** A GET with a host of the attacker's choice. */
export const getAt = (host: string, path: string, headers: readonly string[] = []) =>
  [`GET ${path} HTTP/1.1`, `host: ${host}`, ...headers, "", ""].join("\r\n");
