/**
 * Limits of credentials: the operator's, and those that the vendor's own headers report (R-LIM-1).
 */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import type { CredentialConfig, RateLimits } from "../../../src/config/config.ts";
import { newRequestId, useGateway } from "../harness.ts";
import {
  completes,
  type RoutingVendor,
  startVendor,
  type VendorAnswer,
} from "../../support/routing-vendor.ts";

let vendor: RoutingVendor;
beforeAll(async () => {
  vendor = await startVendor();
});
afterAll(() => vendor.close());
beforeEach(() => {
  vendor.requests.length = 0;
  vendor.answer = completes;
});

const none: RateLimits = { rpm: undefined, tpm: undefined, concurrency: undefined };
const credential = (name: string, more: Partial<CredentialConfig> = {}): CredentialConfig => ({
  ...{ name, apiKey: `sk-${name}`, weight: 1, priority: 0, ...more },
});
/** A credential with limits, and one that takes what it does not. */
const pair = (name: string, limits: Partial<RateLimits>) => [
  credential(name, { limits: { ...none, ...limits } }),
  credential(`${name}-backup`, { priority: 1 }),
];

const fixture = useGateway(() => {
  const { baseUrl } = vendor;
  const credentials = {
    rpm: pair("rpm", { rpm: 3 }),
    tpm: pair("tpm", { tpm: 2_000 }),
    atonce: pair("atonce", { concurrency: 2 }),
    sole: [credential("sole", { limits: { ...none, rpm: 1 } })],
    quota: pair("quota", {}),
  };
  const names = Object.keys(credentials);
  return {
    vendors: Object.fromEntries(
      Object.entries(credentials).map(([name, each]) => [name, { baseUrl, credentials: each }]),
    ),
    models: Object.fromEntries(
      names.map((name) => [name, { routes: [{ vendor: name, model: "x" }] }]),
    ),
  };
});

const ask = (model: string, more: object = {}) => ({
  ...{ model, messages: [{ role: "user", content: `Hello ${newRequestId()}` }], ...more },
});

it("of 10 calls at once, 3 use a credential with a limit of 3 per minute, the others the next one", async () => {
  const replies = await Promise.all(Array.from({ length: 10 }, () => fixture.chat(ask("rpm"))));
  expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 200));
  expect(vendor.countByKey()).toEqual({ "sk-rpm": 3, "sk-rpm-backup": 7 });
});

it("tokens are reserved at most, and what a call has not used serves the next one", async () => {
  const tokens = { max_tokens: 1_800 };
  for (let at = 0; at < 3; at++) await fixture.chat(ask("tpm", tokens));
  expect(vendor.countByKey()).toEqual({ "sk-tpm": 3 });
  const held: (() => void)[] = [];
  vendor.answer = (request) => held.push(() => completes(request));
  const running = [fixture.chat(ask("tpm", tokens)), fixture.chat(ask("tpm", tokens))];
  await expect.poll(() => held.length).toBe(2);
  expect(vendor.countByKey()).toEqual({ "sk-tpm": 4, "sk-tpm-backup": 1 });
  for (const release of held) release();
  await Promise.all(running);
});

it("calls at once are limited, and a call that ends makes room", async () => {
  const held: (() => void)[] = [];
  vendor.answer = (request) => held.push(() => completes(request));
  const running = Array.from({ length: 4 }, () => fixture.chat(ask("atonce")));
  await expect.poll(() => held.length).toBe(4);
  expect(vendor.countByKey()).toEqual({ "sk-atonce": 2, "sk-atonce-backup": 2 });
  for (const release of held) release();
  await Promise.all(running);
  vendor.answer = completes;
  await expect
    .poll(async () => {
      vendor.requests.length = 0;
      await fixture.chat(ask("atonce"));
      return vendor.requests[0]?.key;
    })
    .toBe("sk-atonce");
});

it("where no other credential is left, the caller gets 503 with the time to wait, and pays nothing", async () => {
  const first = newRequestId();
  expect((await fixture.chat(ask("sole"), { "x-request-id": first })).status).toBe(200);
  await fixture.gateway.call(first);
  const before = await fixture.gateway.money(fixture.customer.accountId);
  const id = newRequestId();
  const reply = await fixture.chat(ask("sole"), { "x-request-id": id });
  expect(reply.status).toBe(503);
  expect(JSON.parse(reply.body.toString())).toMatchObject({
    error: { code: "upstream_overloaded" },
  });
  expect(Number(reply.headers["retry-after"])).toBeGreaterThan(50);
  expect(vendor.requests).toHaveLength(1);
  expect(await fixture.gateway.money(fixture.customer.accountId)).toEqual(before);
  expect((await fixture.gateway.call(id)).attempts).toMatchObject([
    { vendor: "sole", vendorModel: "x", credential: "" },
  ]);
});

it("calls go to another credential before the vendor answers 429, by its x-ratelimit headers", async () => {
  let left = 3;
  let refused = 0;
  const counting: VendorAnswer = (request) => {
    if (request.key !== "sk-quota") return completes(request);
    left--;
    if (left < 0) refused++;
    request.response.setHeader("x-ratelimit-remaining-requests", String(left));
    request.response.setHeader("x-ratelimit-reset-requests", "45s");
    return completes(request);
  };
  vendor.answer = counting;
  for (let at = 0; at < 8; at++) expect((await fixture.chat(ask("quota"))).status).toBe(200);
  expect(vendor.countByKey()).toEqual({ "sk-quota": 3, "sk-quota-backup": 5 });
  expect(refused).toBe(0);
});
