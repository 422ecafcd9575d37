/** R-MON-2, R-TSK-7: a job whose process died between its intent and the vendor's answer. */
import { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { recordNotification } from "../../../src/task/work/vendor-notifications.ts";
import { createExternalTasks, type ExternalTasks } from "../../../src/task/work/external.ts";
import type { TaskRow } from "../../../src/task/task-row.ts";
import { claimObjects, insertJob, acceptJob } from "../../../src/native/store.ts";
import { always, priceDefault, type Customer } from "../../support/gateway.ts";
import { often } from "./native-vendor.ts";
import { type ReplicateGateway, startReplicateGateway } from "./replicate-gateway.ts";

let gateway: ReplicateGateway;
let customer: Customer;
let pool: Pool;
let external: ExternalTasks;

beforeAll(async () => {
  gateway = await startReplicateGateway({ taskTimings: { ...often, settleMs: 0 } });
  customer = await gateway.customer();
  pool = new Pool({ connectionString: gateway.databaseUrl, max: 2 });
  external = createExternalTasks({
    pool,
    clock: systemClock,
    onNews: () => {},
    pricing: {
      priceNow: () => priceDefault,
      version: () => "test",
      hold: () => 5_000_000n,
    },
  });
});

afterAll(async () => {
  await pool.end();
  await gateway.close();
});

/** Writes the intent down, as a process does that dies right after it. */
function begin(requestId: string, waitMs: number): Promise<TaskRow> {
  const { accountId, keyId } = customer;
  const model = {
    key: "flux",
    name: "flux",
    type: ModelType.IMAGE,
    routes: [],
    maxOutputTokens: 0,
    holdOutputTokens: 0,
    prices: always(priceDefault),
  };
  return external.begin(
    {
      model,
      route: { vendor: "replicate", model: "labs/flux" },
      units: { images: 1 },
      path: "/replicate/v1/predictions",
      fingerprint: Buffer.alloc(32),
      callbackUrl: null,
      runMs: 60_000,
      waitMs,
      vendorMax: undefined,
    },
    { caller: { kind: "key", accountId, keyId, models: undefined }, requestId },
    (open, { id }) =>
      insertJob(open, {
        task_id: id,
        account_id: accountId,
        vendor: "replicate",
        word: "predictions",
        callback_id: null,
        wants_progress: true,
      }),
  );
}

test("an external task with a lost answer is never submitted again, and its money is released", async () => {
  await begin("lost-1", 1);
  const call = await gateway.call("lost-1");
  expect([call.errorCode, call.cost?.amountNanos ?? 0n]).toEqual(["upstream_submit_unknown", 0n]);
  expect(gateway.vendor.requests.filter(({ method }) => method === "POST")).toEqual([]);
});

test("an external task whose process died after the vendor's answer is run to its end by a worker", async () => {
  const prediction = { id: "p-died", status: "failed", output: null, error: "no" };
  gateway.replicate.predictions.set("p-died", { ...prediction, input: {}, version: "labs/flux" });
  const task = await begin("lost-2", 1_000);
  const owner = { vendor: "replicate", accountId: customer.accountId, credential: "" };
  await claimObjects(pool, owner, ["predictions/p-died"]);
  await acceptJob(pool, task.id, { vendorId: "p-died", status: "starting", body: null });
  await recordNotification(pool, task.attempt_token ?? "", {
    vendorTaskId: "p-died",
    isConfirmed: true,
  });
  const call = await gateway.call("lost-2");
  expect([call.errorCode, call.cost?.amountNanos ?? 0n]).toEqual(["upstream_error", 0n]);
  expect((await gateway.money(customer.accountId)).held).toBe(0n);
});
