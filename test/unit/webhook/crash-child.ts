/** A process that sends webhooks until it is killed, or kills itself at a given point. */
import { Pool } from "pg";
import { createGuardedClient } from "../../../src/http/guarded-client.ts";
import { createDispatcher } from "../../../src/webhook/dispatcher.ts";
import { createSecrets } from "../../../src/webhook/secrets.ts";
import { killSelf } from "../../support/child.ts";
import { ca } from "../../support/receiver.ts";

const [url = "", point = "", times = "1"] = process.argv.slice(2);
let left = Number(times);

const pool = new Pool({ connectionString: url, max: 4 });
const dispatcher = createDispatcher({
  pool,
  url,
  client: createGuardedClient({ allowHosts: ["localhost"], ca: [ca] }),
  secrets: createSecrets({ pool, masterKey: () => Buffer.alloc(32, 7) }),
  timings: { leaseMs: 1_500, scanMs: 20 },
  failpoint(reached) {
    if (reached === point && --left === 0) killSelf();
  },
});
// No parent is left to end it.
process.once("disconnect", () => process.exit());
await dispatcher.start();
