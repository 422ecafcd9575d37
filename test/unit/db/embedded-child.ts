/** A process that uses the embedded server of the folder in its argument until its input ends. A second argument: the
 * timings of its lease. */
import { once } from "node:events";
import { startEmbedded } from "../../../src/db/embedded/embedded.ts";

const log = { info: () => {}, warn: () => {} };
const [, , dataDir = "", lease] = process.argv;
const embedded = await startEmbedded({
  ...{ dataDir, log, testing: true },
  ...(lease !== undefined && { lease: JSON.parse(lease) }),
});
process.stdout.write(`${JSON.stringify({ url: embedded.url, adopted: embedded.adopted })}\n`);
process.stdin.resume();
await once(process.stdin, "end");
await embedded.stop();
