/** Submits a task, and dies at a point of it: see submit-crash.test.ts. */
import { killSelf } from "../../support/child.ts";
import { openSubmit } from "./submit-setup.ts";

const [url = "", accountId = "", callbackId = "", point] = process.argv.slice(2);
const { submit } = openSubmit(url, {
  failpoint(reached) {
    if (reached === point) killSelf();
  },
});
// Only with something that belongs to the task is there a moment before the commit.
await submit(
  accountId,
  callbackId,
  point === "submit.held" ? { writeAlongside: async () => {} } : {},
);
