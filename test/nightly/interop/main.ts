/**
 * `npm run interop`: whether receivers in other languages, which parse a webhook and sign what they
 * write of it, get the signature that was sent. Uses what is installed and says what is not.
 */
import { createHmac } from "node:crypto";
import * as fc from "fast-check";
import { freezePayload } from "../../../src/webhook/payload.ts";
import { newSecret } from "../../../src/webhook/signature.ts";
import { isInstalled, languages, signaturesOf } from "./languages.ts";
import { anyPayload } from "./payloads.ts";

const count = 3_000;
const seed = Number(process.argv[2] ?? Date.now() % 1_000_000);
const secret = newSecret();
const bodies = fc
  .sample(anyPayload, { numRuns: count, seed })
  .map((payload) => freezePayload(payload).bytes);
const expected = bodies.map((body) => createHmac("sha256", secret).update(body).digest("hex"));
process.stdout.write(`${count} random payloads, seed ${seed}\n`);
for (const language of languages) {
  if (!isInstalled(language)) {
    process.stdout.write(`skip ${language.name}: not installed\n`);
    continue;
  }
  const signatures = await signaturesOf(language, secret, bodies);
  const wrong = expected.filter((signature, index) => signatures[index] !== signature).length;
  const first = expected.findIndex((signature, index) => signatures[index] !== signature);
  process.stdout.write(
    `${wrong === 0 ? "ok  " : "FAIL"} ${language.name}: ${count - wrong} verify\n`,
  );
  if (wrong > 0) process.stdout.write(`     ${bodies[first]?.toString()}\n`);
  if (wrong > 0) process.exitCode = 1;
}
