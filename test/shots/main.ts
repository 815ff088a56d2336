/** `npm run shots`: writes screenshots of every page in its states. */
import { Command } from "commander";
import { takeShots } from "./take-shots.ts";
import { withViewer } from "./viewer.ts";

const widthsDefault = "320,768,1440,1920";

interface Options {
  out: string;
  widths: string;
  only: string;
}

const main = ({ out, widths, only }: Options) =>
  withViewer(async (viewer, states) => {
    const chosen = states.filter(({ name }) => only.split(",").some((text) => name.includes(text)));
    await takeShots(viewer, chosen, { out, widths: widths.split(",").map(Number) });
    process.stdout.write(`${chosen.length} pages are in ${out}\n`);
  });

const program = new Command("npm run shots --")
  .description("Writes screenshots of every page, in each state, light and dark, as PNG files.")
  .requiredOption("--out <folder>", "where to write them; it is created")
  .option("--widths <list>", "comma list of widths in pixels", widthsDefault)
  .option("--only <list>", "only the pages whose name contains one of these, such as overview,busy", "")
  .showHelpAfterError();
await main(program.parse().opts<Options>());
