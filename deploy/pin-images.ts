/** `npm run images:pin`: appends the digest of each container image to its version. */
import { readFileSync, writeFileSync } from "node:fs";
import { Command, InvalidArgumentError } from "commander";
import { digestOf, NoDigest } from "./registry.ts";

const files = ["Dockerfile", "docker-compose.yml"];
// An image with a version. One without a version is built here, or is a stage of the Dockerfile.
const reference = /^(FROM | +image: )([\w./-]+(?::\d+\/[\w./-]+)?:[\w.-]+)(?:@sha256:[0-9a-f]{64})?(?= |$)/gm;

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

const program = new Command("npm run images:pin --")
  .description(
    `Asks the registries for the current digest of each image in ${files.join(" and ")}, and appends it to the version. Run it again to update the digests. If a registry does not answer, it changes nothing, prints the reason, and exits with 1.`,
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
