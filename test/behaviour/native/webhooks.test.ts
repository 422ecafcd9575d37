/** R-HOOK-7: the platform's webhook for jobs in a vendor's own form. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Customer } from "../../support/gateway.ts";
import { caFile, type Received, type Receiver, startReceiver } from "../../support/receiver.ts";
import { type ReplicateGateway, startReplicateGateway } from "./replicate-gateway.ts";

let gateway: ReplicateGateway;
let customer: Customer;
let receiver: Receiver;

beforeAll(async () => {
  receiver = await startReceiver();
  const publicUrl = "https://gateway.example";
  const webhooks = { allowHosts: ["localhost"], caFile };
  gateway = await startReplicateGateway({ webhooks, settings: { publicUrl } });
  customer = await gateway.customer();
});

afterAll(async () => {
  expect(gateway.vendor.violations).toEqual([]);
  await gateway.close();
  await receiver.close();
});

interface Hook {
  readonly callback_id: string;
  readonly status: string;
  readonly result_url: string | null;
  readonly external_data: Readonly<Record<string, string>>;
}

const hookOf = ({ body }: Received): Hook => JSON.parse(body.toString()) as Hook;

async function submit(path: string, headers: Record<string, string>, body = {}): Promise<string> {
  const response = await fetch(`${gateway.url}/replicate/v1/models/labs/flux/predictions`, {
    method: "POST",
    headers: { authorization: `Bearer ${customer.key}`, ...headers },
    body: JSON.stringify({ input: {}, webhook: `${receiver.origin}${path}`, ...body }),
  });
  expect(response.status).toBe(201);
  return ((await response.json()) as { id: string }).id;
}

function finish(status: string): void {
  const prediction = gateway.replicate.last();
  prediction.status = status;
  prediction.output = status === "succeeded" ? [`${gateway.vendor.origin}/files/a.png`] : null;
}

/** The last webhook of a path. */
async function ended(path: string): Promise<Hook> {
  for (let count = 1; ; count++) {
    const arrived = await receiver.arrived(count);
    const found = arrived.filter((each) => each.path === path).map(hookOf);
    const last = found.find(({ status }) => status !== "progress");
    if (last !== undefined) return last;
  }
}

test("the vendor's callback field is removed, and the webhook of the end has the vendor's own report", async () => {
  const id = await submit(
    "/one",
    { "x-request-id": "hook-1" },
    { webhook_events_filter: ["completed"] },
  );
  finish("succeeded");
  const hook = await ended("/one");
  expect(hook).toMatchObject({ callback_id: id, status: "completed" });
  expect(hook.result_url).toMatch(/^https:\/\/gateway\.example\/files\//);
  const { vendor, vendor_task_id, vendor_status, vendor_payload, request_id } = hook.external_data;
  expect({ vendor, vendor_task_id, vendor_status, request_id }).toEqual({
    vendor: "replicate",
    vendor_task_id: id,
    vendor_status: "succeeded",
    request_id: "hook-1",
  });
  const { urls } = JSON.parse(vendor_payload ?? "") as { urls: { get: string } };
  expect(urls.get).toBe(`https://gateway.example/replicate/v1/predictions/${id}`);
  const all = (await receiver.arrived(1)).filter(({ path }) => path === "/one").map(hookOf);
  expect(all.map(({ status }) => status)).toEqual(["completed"]);
});

test("x-callback-id is the receiver's id of the job, also in the webhook of a failure", async () => {
  await submit("/two", { "x-callback-id": "order 7" });
  finish("failed");
  const hook = await ended("/two");
  expect(hook).toMatchObject({ callback_id: "order 7", status: "failed" });
  expect(hook.external_data["vendor_status"]).toBe("failed");
});

test("an address that is not public is refused before anything is held", async () => {
  const response = await fetch(`${gateway.url}/replicate/v1/models/labs/flux/predictions`, {
    method: "POST",
    headers: { authorization: `Bearer ${customer.key}`, "x-callback-url": "http://10.0.0.1/" },
    body: '{"input": {}}',
  });
  expect(response.status).toBe(400);
  expect((await gateway.money(customer.accountId)).held).toBe(0n);
});
