/** Works on tasks until it reaches a point, and dies there: see crash.test.ts. */
import { Pool } from "pg";
import { killSelf } from "../../support/child.ts";
import { createTaskWorker } from "../../../src/task/work/worker.ts";
import { crashTasks, type Resubmit } from "./crash-vendor.ts";
import { one, workerOptions } from "./worker-setup.ts";

const [databaseUrl, vendorUrl = "", resubmit, lost, point] = process.argv.slice(2);
const pool = new Pool({ connectionString: databaseUrl, max: 4 });
const tasks = crashTasks(resubmit as Resubmit, vendorUrl, lost === "true");
const vendors = one({ v: { tasks, maxInFlight: undefined, baseUrl: "" } });
createTaskWorker(
  workerOptions(pool, {
    ...vendors,
    // A dead process's tasks are free again soon; a living one keeps them also if the machine is
    // busy.
    timings: { leaseMs: 1_500, heartbeatMs: 100, settleMs: 100 },
    failpoint(reached) {
      if (reached === point) killSelf();
    },
  }),
).start();
// No parent is left to end it.
process.once("disconnect", () => process.exit());
// The worker's timers hold no process.
setInterval(() => {}, 1_000);
