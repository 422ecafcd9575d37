/** Fills a journal until it cannot be written, in a separate process: see journal.test.ts. */
import { Journal } from "../../../../src/billing/journal/journal.ts";
import { callRow } from "../calls/call-row.ts";
import { newId } from "../../../../src/core/uuid.ts";

// Without a listener the signal of the limit would end the process.
process.on("SIGXFSZ", () => {});
const journal = new Journal({ path: process.argv[2] ?? "" });
const kept: string[] = [];
for (;;) {
  const id = newId();
  const accountId = newId();
  const record = callRow(id, accountId);
  if (!(await journal.keep({ id, accountId, cost: "1", record }))) break;
  kept.push(id);
}
await journal.close();
process.stdout.write(JSON.stringify({ kept, failures: journal.stats().failures }));
