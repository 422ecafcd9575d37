/** A process that owns the embedded server of the folder in its argument until its input ends. */
import { once } from "node:events";
import { startEmbedded } from "../../../src/db/embedded/embedded.ts";

const log = { info: () => {}, warn: () => {} };
const [, , dataDir = ""] = process.argv;
try {
  const embedded = await startEmbedded({ dataDir, log, testing: true });
  process.stdout.write(`${JSON.stringify({ url: embedded.url })}\n`);
  process.stdin.resume();
  await once(process.stdin, "end");
  await embedded.stop();
} catch (error) {
  process.stdout.write(`${JSON.stringify({ error: String(error) })}\n`);
}
