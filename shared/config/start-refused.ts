/** A process cannot start as it is set up. The message is what the operator gets, without a stack. */
export class StartRefused extends Error {}

/** What runs Serpmill. The README and docs/operating/deploying.md have this sentence too. */
export const nodeSentence =
  "To install Serpmill you need Node 20 or newer with npm. Serpmill itself runs on Node 24, which npm installs as the package `node`.";
const nodeMajorMin = 24;

/** @throws {StartRefused} if the Node with this version does not run Serpmill. One before 22.18 cannot even load it. */
export function refuseOldNode(version: string): void {
  if (Number(version.split(".")[0]) >= nodeMajorMin) return;
  throw new StartRefused(`This is Node ${version}. ${nodeSentence} Start with node_modules/.bin/node or npm.`);
}
