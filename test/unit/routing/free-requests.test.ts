/** Free requests at vendors that do not answer. */
import { pino } from "pino";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import type { VendorConfig } from "../../../src/config/config.ts";
import { createMetrics } from "../../../src/observe/metrics.ts";
import { HttpFailure } from "../../../src/http/failure.ts";
import { FreeRequests } from "../../../src/routing/free-requests.ts";
import { Targets } from "../../../src/routing/targets.ts";
import type { Vendor } from "../../../src/provider/vendor.ts";
import { vendorKinds } from "../../../src/provider/index.ts";
import { type PlainVendor, startPlainVendor } from "../../support/plain-vendor.ts";

let sim: PlainVendor;
const open: Vendor[] = [];
beforeEach(async () => {
  sim = await startPlainVendor(({ url }) =>
    url.startsWith("/hangs") ? new Promise(() => {}) : { body: '{"input_tokens": 7}' },
  );
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((vendor) => vendor.close()));
  await sim.close();
});

/** Vendors of these names, each with one route of a model. */
function openVendors(names: readonly string[]) {
  const vendors = new Map(
    names.map((name) => {
      const config: VendorConfig = {
        ...{ name, kind: "anthropic", baseUrl: `${sim.url}/${name}`, apiKey: "sk-free" },
        ...{ dialects: undefined, maxInFlight: 4, pollsPerSecond: undefined },
        ...{ onDisconnect: "grace", nativePrefix: undefined, runBaseUrl: undefined },
        timeouts: { connectMs: 60_000, firstByteMs: 60_000, idleMs: 60_000 },
        credentials: [{ name: "A", apiKey: "sk-free", weight: 1, priority: 0 }],
      };
      const client = vendorKinds["anthropic"]?.create(config);
      if (client === undefined) throw new Error("no kind anthropic");
      open.push(client);
      return [name, { config, clients: [client] as const }] as const;
    }),
  );
  const [metrics, log] = [createMetrics(), pino({ level: "silent" })];
  const targets = new Targets({ vendors, metrics, log });
  const routes = names.map((vendor, priority) => ({
    route: { vendor, model: "m" },
    ...{ dialect: Dialect.MESSAGES, detachedReadMs: 0, priority },
  }));
  const free = new FreeRequests({ targets, metrics, log });
  const count = (signal: AbortSignal = new AbortController().signal, timeoutMs = 50) =>
    free.ask(routes, {
      ...{ operation: "countTokens", signal, timeoutMs },
      callFor: (_route, ends) => ({
        ...{ dialect: Dialect.MESSAGES, model: "m", query: "", headers: {}, stream: false },
        body: [Buffer.from("{}")],
        signal: ends,
      }),
      read: async ({ body }) => (await body.whole(1_000)).toString(),
    });
  return { count, inFlight: () => names.map((name) => targets.vendor(name)?.inFlight) };
}

const asked = (): string[] => sim.requests.map(({ url }) => url.split("/")[1] ?? "");

it("a route that does not answer in time is left for another one, and gets no more for a while", async () => {
  const { count, inFlight } = openVendors(["hangs", "answers"]);
  for (let i = 0; i < 3; i++) expect(await count()).toBe('{"input_tokens": 7}');
  expect(asked()).toEqual(["hangs", "answers", "answers", "answers"]);
  expect(inFlight()).toEqual([0, 0]);
});

it("if no route answers there is no result, and no route is tried again at once", async () => {
  const { count, inFlight } = openVendors(["hangs"]);
  expect(await count()).toBeUndefined();
  expect(await count()).toBeUndefined();
  expect(asked()).toEqual(["hangs"]);
  expect(inFlight()).toEqual([0]);
});

it("a client that leaves ends its request, which says nothing about the route", async () => {
  const { count, inFlight } = openVendors(["hangs"]);
  for (let i = 1; i <= 2; i++) {
    const leaving = new AbortController();
    const counting = count(leaving.signal, 60_000);
    await expect.poll(() => sim.requests.length).toBe(i);
    leaving.abort();
    await expect(counting).rejects.toBeInstanceOf(HttpFailure);
  }
  expect(inFlight()).toEqual([0]);
});
