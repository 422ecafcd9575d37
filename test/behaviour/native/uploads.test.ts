/** Uploads to vendors cost their customer nothing, so they are bounded (R-MON-16). */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Customer } from "../../support/gateway.ts";
import { type ReplicateGateway, startReplicateGateway } from "./replicate-gateway.ts";

let gateway: ReplicateGateway;

beforeAll(async () => {
  gateway = await startReplicateGateway({
    limits: { uploads: { objectsPerDay: 10, bytesPerDay: 10_000 } },
  });
});

afterAll(async () => {
  expect(gateway.vendor.violations).toEqual([]);
  await gateway.close();
});

async function upload({ key }: Customer, bytes = 10): Promise<Response> {
  return fetch(`${gateway.url}/replicate/v1/files`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/octet-stream" },
    body: Buffer.alloc(bytes, "a"),
  });
}

test("an account without money uploads nothing, and the vendor is not asked", async () => {
  const poor = await gateway.customer({ balanceNanos: 0n });
  gateway.vendor.clear();
  const reply = await upload(poor);
  expect(reply.status).toBe(402);
  expect(await reply.json()).toMatchObject({ code: "insufficient_balance" });
  expect(gateway.vendor.requests.filter(({ method }) => method === "POST")).toEqual([]);
});

test("of many uploads at once, exactly the day's number of objects reaches the vendor", async () => {
  const customer = await gateway.customer();
  gateway.vendor.clear();
  const replies = await Promise.all(Array.from({ length: 25 }, () => upload(customer)));
  const statuses = replies.map(({ status }) => status);
  expect(statuses.filter((status) => status === 201)).toHaveLength(10);
  expect(statuses.filter((status) => status === 429)).toHaveLength(15);
  expect(gateway.vendor.requests.filter(({ url }) => url === "/v1/files")).toHaveLength(10);
  const refused = replies.find(({ status }) => status === 429);
  expect(Number(refused?.headers.get("retry-after"))).toBeGreaterThan(0);
  expect(await refused?.json()).toMatchObject({ detail: expect.stringContaining("10 files") });
});

test("the bytes of a day are bounded for each account by itself", async () => {
  const [customer, other] = await Promise.all([gateway.customer(), gateway.customer()]);
  expect((await upload(customer, 6_000)).status).toBe(201);
  expect((await upload(customer, 6_000)).status).toBe(429);
  expect((await upload(customer, 4_000)).status).toBe(201);
  expect((await upload(other, 10_000)).status).toBe(201);
  expect((await upload(other, 10_001)).status).toBe(429);
});
