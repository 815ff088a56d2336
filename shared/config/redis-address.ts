/** What REDIS_URL says: the address of Redis itself, or of Sentinels that know where the primary of this name is. */
export interface RedisAddress {
  username: string | undefined;
  password: string | undefined;
  isEncrypted: boolean;
  /** One Redis, or the Sentinels. */
  servers: readonly Server[];
  /** Undefined if the server is Redis itself. */
  primaryName: string | undefined;
}

export interface Server {
  host: string;
  port: number;
}

export const expectedRedisUrl =
  "expected a URL that begins with redis:// or rediss:// and has no path but the number of a database, or redis+sentinel://user:password@host:26379,host:26379/name (rediss+sentinel:// for TLS)";

const sentinelForm =
  /^redis(?<tls>s?)\+sentinel:\/\/(?:(?<user>[^:@/]*)(?::(?<pass>[^@/]*))?@)?(?<hosts>[^@/]+)\/(?<name>[\w.-]+)$/;
const hostForm = /^(?<host>\[[\da-fA-F:.]+\]|[\w.-]+)(?::(?<port>\d{1,5}))?$/;
const redisPort = 6_379;
const sentinelPort = 26_379;
const portMax = 65_535;

/** @returns undefined for a text of neither form. */
export function readRedisAddress(text: string): RedisAddress | undefined {
  try {
    return text.includes("+sentinel:") ? readSentinels(text) : readSingle(new URL(text));
  } catch {
    return undefined; // No URL, or a % that encodes nothing.
  }
}

/** `host:port` of each server, without credentials. */
export function hostsOf(text: string): string {
  const { servers = [] } = readRedisAddress(text) ?? {};
  return servers.map(({ host, port }) => `${host.includes(":") ? `[${host}]` : host}:${port}`).join(", ");
}

function readSingle({ protocol, username, password, hostname, port, pathname }: URL): RedisAddress | undefined {
  // With another path ioredis would stay in the database 0, which may be that of another service.
  if ((protocol !== "redis:" && protocol !== "rediss:") || !/^\/?\d*$/.test(pathname)) return undefined;
  return {
    ...credentials(username, password),
    isEncrypted: protocol === "rediss:",
    servers: [{ host: withoutBrackets(hostname || "localhost"), port: Number(port || redisPort) }],
    primaryName: undefined,
  };
}

/** URL cannot read more than one host. */
function readSentinels(text: string): RedisAddress | undefined {
  const { tls, user, pass, hosts = "", name } = sentinelForm.exec(text)?.groups ?? {};
  const servers = hosts.split(",").flatMap((each) => {
    const { host, port = sentinelPort } = hostForm.exec(each)?.groups ?? {};
    return host === undefined || Number(port) > portMax ? [] : { host: withoutBrackets(host), port: Number(port) };
  });
  if (name === undefined || servers.length < hosts.split(",").length) return undefined;
  return { ...credentials(user, pass), isEncrypted: tls === "s", servers, primaryName: name };
}

const credentials = (username = "", password = "") => ({
  username: decodeURIComponent(username) || undefined,
  password: decodeURIComponent(password) || undefined,
});

const withoutBrackets = (host: string) => host.replace(/^\[|\]$/g, "");
