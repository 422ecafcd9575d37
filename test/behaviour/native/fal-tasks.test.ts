/** The gateway's own tasks at fal: the same queue, with a worker that follows them. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { Customer } from "../../support/gateway.ts";
import { type FalGateway, startFalGateway } from "./fal-vendor.ts";

let gateway: FalGateway;
let customer: Customer;

beforeAll(async () => {
  gateway = await startFalGateway();
  customer = await gateway.customer();
});

afterAll(async () => {
  expect([...gateway.run.violations, ...gateway.queue.violations]).toEqual([]);
  await gateway.close();
});

async function task(path: string, body?: object): Promise<Record<string, unknown>> {
  const response = await fetch(`${gateway.url}/api/ai/tasks${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: {
      authorization: `Bearer ${customer.key}`,
      "content-type": "application/json",
      "x-request-id": "fal-own-task",
    },
    ...(body && { body: JSON.stringify(body) }),
  });
  expect(response.status).toBe(200);
  return (await response.json()) as Record<string, unknown>;
}

test("R-TSK-1: a task runs in fal's queue, has copies of its files, and is charged by what fal bills", async () => {
  const imageParams = { prompt: "a lighthouse", n: 4 };
  const { taskId } = await task("", { modelKey: "our/flux", imageParams });
  await vi.waitUntil(() => gateway.fal.jobs.size === 1);
  const url = `${gateway.queue.origin}/files/1.png`;
  const images = Array.from({ length: 3 }, () => ({ url, content_type: "image/png" }));
  gateway.fal.end({
    headers: { "x-fal-billable-units": "3.0" },
    body: JSON.stringify({ images }),
  });
  const told = (): Promise<Record<string, unknown>> => task(`/${taskId as string}?wait=10`);
  await vi.waitUntil(async () => (await told())["status"] === "completed");
  expect((await told())["resultUrls"]).toHaveLength(3);
  expect((await gateway.call("fal-own-task")).cost?.amountNanos).toBe(75_000_000n);
  const [submitted] = gateway.queue.requests;
  expect([submitted?.url, submitted?.json]).toEqual([
    "/fal-ai/flux/dev",
    { prompt: "a lighthouse", num_images: 4 },
  ]);
});
