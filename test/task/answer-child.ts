/** Works on a task whose vendor answers when it is told to, until it is killed: see answer-journal.test.ts. */
import { once } from "node:events";
import { pino } from "pino";
import { AnswerJournal } from "../../src/task/work/answer-journal.ts";
import { createTaskWorker } from "../../src/task/work/worker.ts";
import { openPool } from "../../src/db/pool/open-pool.ts";
import { type AnswerKind, answers, masterKey } from "./answers.ts";
import { one, results, vendor, workerOptions } from "./worker-setup.ts";

const [databaseUrl = "", folder = "", kind = ""] = process.argv.slice(2);
const { submitted, isStoredFirst = false } = answers[kind as AnswerKind];
const pool = openPool(databaseUrl, { max: 4, for: "jobs" });
const log = pino();
const alarm = (message: string, fields: object): void => log.error(fields, message);
/** Tells the test, and waits until it says so. */
const waitAt = async (place: string): Promise<void> => {
  process.send?.(place);
  await once(process, "message");
};
const v = vendor({
  resubmit: "blind",
  async submit() {
    if (!isStoredFirst) await waitAt("asked");
    return submitted;
  },
});
createTaskWorker(
  workerOptions(pool, {
    ...one({ v }),
    answers: new AnswerJournal({ folder, pool, masterKey, alarm }),
    results: {
      async store(source, about) {
        if (isStoredFirst) await waitAt("copying");
        return results.store(source, about);
      },
    },
    warn: () => {},
  }),
).start();
// Nobody is left who would end it.
process.once("disconnect", () => process.exit());
