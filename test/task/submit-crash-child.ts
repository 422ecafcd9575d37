/** Submits a task, and dies at a point of it: see submit-crash.test.ts. */
import { openSubmit } from "./submit-parts.ts";

const [url = "", accountId = "", callbackId = "", point] = process.argv.slice(2);
const { submit } = openSubmit(url, (reached) => {
  if (reached === point) process.kill(process.pid, "SIGKILL");
});
await submit(accountId, callbackId);
