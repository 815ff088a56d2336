/**
 * `npm run images:pin`: appends the digest of each container image to its version. It asks the registries by the distribution
 * specification of OCI.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { Command, InvalidArgumentError } from "commander";

const files = ["Dockerfile", "docker-compose.yml", "deploy/quick.yml", "deploy/helm/values.yaml"];
// An image with a version. One without a version is built here, or is a stage of the Dockerfile.
const reference = /^(FROM | +image: )([\w./-]+(?::\d+\/[\w./-]+)?:[\w.-]+)(?:@sha256:[0-9a-f]{64})?(?= |$)/gm;

// Docker omits the host of Docker Hub, and the folder of official images: postgres is library/postgres.
const hub = "registry-1.docker.io";
const timeoutMs = 10_000;
const accept = [
  "application/vnd.oci.image.index.v1+json",
  "application/vnd.docker.distribution.manifest.list.v2+json",
  "application/vnd.oci.image.manifest.v1+json",
  "application/vnd.docker.distribution.manifest.v2+json",
].join(", ");

interface Options {
  registry?: URL;
}

/** Writes all digests, or none if one is unavailable. */
async function pin({ registry }: Options): Promise<void> {
  const before = files.map((path) => ({ path, text: readFileSync(path, "utf8") }));
  const images = new Set(before.flatMap(({ text }) => [...text.matchAll(reference)].map(([, , image = ""]) => image)));
  const digests = new Map<string, string>();
  for (const image of images) digests.set(image, await digestOf(image, registry));
  for (const { path, text } of before) {
    const pinned = text.replace(reference, (_, key: string, image: string) => `${key}${image}@${digests.get(image)}`);
    writeFileSync(path, pinned);
  }
  for (const [image, digest] of digests) process.stdout.write(`${image}@${digest}\n`);
}

function parseAddress(text: string): URL {
  if (!/^https?:\/\//.test(text) || !URL.canParse(text)) throw new InvalidArgumentError("Expected an http(s) address.");
  return new URL(text);
}

/** The registry returned no digest. The message is a clause for the operator. */
class NoDigest extends Error {}

/**
 * The digest of an image such as `postgres:18`; for a multi-platform image, that of its index.
 * @param mirror address of a registry that mirrors the images of all others under their names.
 * @returns `sha256:` and 64 hexadecimal digits, as the registry returned them.
 * @throws {NoDigest} if the registry is unreachable, lacks the tag, or returns no digest.
 */
export async function digestOf(image: string, mirror?: URL): Promise<string> {
  const { host, repository, tag } = partsOf(image);
  const registry = mirror ?? new URL(`https://${host}`);
  const manifest = new URL(`/v2/${repository}/manifests/${tag}`, registry);
  const answer = await ask(manifest, "HEAD", { accept });
  const challenge = answer.status === 401 ? answer.headers.get("www-authenticate") : null;
  const manifestAnswer = challenge === null ? answer : await askWithToken(manifest, challenge);
  if (!manifestAnswer.ok) {
    throw new NoDigest(`The registry ${registry.host} answered ${manifestAnswer.status} for ${image}`);
  }
  const digest = manifestAnswer.headers.get("docker-content-digest") ?? "";
  if (!/^sha256:[0-9a-f]{64}$/.test(digest)) {
    throw new NoDigest(`The registry ${registry.host} returned no digest for ${image}`);
  }
  return digest;
}

function partsOf(image: string): { host: string; repository: string; tag: string } {
  const [, path = "", tag = ""] = /^(.+):([\w.-]+)$/.exec(image) ?? [];
  const [first = "", ...rest] = path.split("/");
  // As in Docker, a first part with a dot or a port is a host.
  if (rest.length > 0 && /[.:]|^localhost$/.test(first)) return { host: first, repository: rest.join("/"), tag };
  return { host: hub, repository: rest.length > 0 ? path : `library/${path}`, tag };
}

/** Repeats the request with an anonymous token from the address that the registry names. */
async function askWithToken(manifest: URL, challenge: string): Promise<Response> {
  const { realm, ...scope } = Object.fromEntries(
    [...challenge.matchAll(/(\w+)="([^"]*)"/g)].map(([, name = "", value = ""]) => [name, value]),
  );
  if (!/^bearer /i.test(challenge) || !realm || !URL.canParse(realm)) {
    throw new NoDigest(`The registry ${manifest.host} requires a login, and only public images can be pinned`);
  }
  const address = new URL(realm);
  for (const [name, value] of Object.entries(scope)) address.searchParams.set(name, value);
  const answer = await ask(address, "GET", {});
  const granted: unknown = answer.ok ? await answer.json().catch(() => undefined) : undefined;
  // Registries use either name.
  const { token, access_token: accessToken } = Object(granted);
  const bearer: unknown = token ?? accessToken;
  if (typeof bearer !== "string") {
    throw new NoDigest(`${address.host} answered ${answer.status} without a token for the registry ${manifest.host}`);
  }
  return ask(manifest, "HEAD", { accept, authorization: `Bearer ${bearer}` });
}

async function ask(url: URL, method: string, headers: Record<string, string>): Promise<Response> {
  try {
    return await fetch(url, { method, headers, signal: AbortSignal.timeout(timeoutMs) });
  } catch {
    throw new NoDigest(`The registry ${url.host} is unreachable`);
  }
}

const program = new Command("npm run images:pin --")
  .description(
    `Asks the registries for the current digest of each image in ${files.join(", ")}, and appends it to the version. Run it again to update the digests. If a registry does not answer, it changes nothing, prints the reason, and exits with 1.`,
  )
  .option("--registry <url>", "ask this registry for every image, such as your mirror", parseAddress)
  .showHelpAfterError("(add --help for the options)")
  .action(async (options: Options) => {
    try {
      await pin(options);
    } catch (error) {
      if (!(error instanceof NoDigest)) throw error;
      process.stderr.write(`${error.message}, so nothing was changed.\n`);
      process.exitCode = 1;
    }
  });
if (import.meta.main) await program.parseAsync();
