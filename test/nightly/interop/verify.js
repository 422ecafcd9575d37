/**
 * Reads a webhook body per line, parses it, writes it as the specification says, and prints its
 * signature.
 */
import { createHmac } from "node:crypto";
import { createInterface } from "node:readline";

for await (const line of createInterface({ input: process.stdin })) {
  const text = JSON.stringify(JSON.parse(line));
  process.stdout.write(`${createHmac("sha256", process.argv[2]).update(text).digest("hex")}\n`);
}
