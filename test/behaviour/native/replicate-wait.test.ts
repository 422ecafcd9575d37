/**
 * `Prefer: wait`: Replicate holds its answer back for up to 60 s, until the work is done. The
 * vendor is simulated, the time too: the client's timeouts run on a clock of undici's own, which
 * its tests move.
 */
import { createRequire } from "node:module";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { Customer } from "../../support/gateway.ts";
import { type ReplicateGateway, startReplicateGateway } from "./replicate-gateway.ts";

/** The clock of all connections to vendors in this process. */
const clock = createRequire(import.meta.url)("undici/lib/util/timers.js") as {
  tick(this: void, byMs: number): void;
};

/** Lets so much time pass. A timer begins with the first tick that it sees. */
function pass(ms: number): void {
  clock.tick(0);
  clock.tick(ms);
}

/** The longest that a client may ask for. */
const longestMs = 60_000;

let gateway: ReplicateGateway;
let customer: Customer;

beforeAll(async () => {
  gateway = await startReplicateGateway();
  customer = await gateway.customer();
});

afterAll(async () => {
  expect(gateway.vendor.violations).toEqual([]);
  await gateway.close();
});

/** Submits a job that its vendor answers on demand. */
async function submit(requestId: string) {
  const held = Promise.withResolvers<void>();
  gateway.vendor.clear();
  gateway.vendor.answer(async () => {
    await held.promise;
    const output = [`${gateway.vendor.origin}/files/a.png`];
    const prediction = { id: requestId, status: "succeeded", output, urls: {}, metrics: {} };
    return { status: 201, body: JSON.stringify(prediction) };
  });
  const answer = fetch(`${gateway.url}/replicate/v1/models/labs/flux/predictions`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${customer.key}`,
      "content-type": "application/json",
      prefer: "wait=60",
      "x-request-id": requestId,
    },
    body: JSON.stringify({ input: { prompt: "a lighthouse" } }),
  });
  await vi.waitUntil(() => gateway.vendor.requests.length > 0);
  expect(gateway.vendor.requests[0]?.headers["prefer"]).toBe("wait=60");
  return { answer, release: () => held.resolve() };
}

test("the vendor has the full 60 s, whatever its timeout for the first byte is", async () => {
  const { answer, release } = await submit("wait-60");
  pass(longestMs);
  release();
  const response = await answer;
  expect([response.status, ((await response.json()) as { status: string }).status]).toEqual([
    201,
    "succeeded",
  ]);
  expect((await gateway.call("wait-60")).cost?.amountNanos).toBe(3_000_000n);
});

test("R-ERR-5: a vendor that takes longer may have the job: it is not submitted again, and free", async () => {
  const { answer, release } = await submit("wait-over");
  pass(longestMs + 30_000);
  const response = await answer;
  release();
  expect([response.status, response.headers.get("x-should-retry")]).toEqual([500, "false"]);
  const call = await gateway.call("wait-over");
  expect([call.errorCode, call.cost?.amountNanos ?? 0n]).toEqual(["upstream_submit_unknown", 0n]);
});
