/** A process that uses the embedded server of the folder in its argument until its input ends. */
import { once } from "node:events";
import { startEmbedded } from "../../src/db/embedded.ts";

const log = { info: () => {}, warn: () => {} };
const embedded = await startEmbedded({ dataDir: process.argv[2] ?? "", log, testing: true });
process.stdout.write(`${JSON.stringify({ url: embedded.url, adopted: embedded.adopted })}\n`);
process.stdin.resume();
await once(process.stdin, "end");
await embedded.stop();
