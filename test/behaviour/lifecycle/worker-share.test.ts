/** A limit of a vendor holds for all workers together: each has its share. */
import { expect, it } from "vitest";
import { startGateway } from "../../support/gateway.ts";
import { startUpstream } from "../../support/upstream/upstream.ts";
import { gated, stream } from "./served.ts";

it("one of two workers has half of the calls that a vendor may have in flight, rounded up", async () => {
  const upstream = await startUpstream();
  const { baseUrl, secret: apiKey } = upstream;
  const gateway = await startGateway({
    vendors: { sim: { baseUrl, apiKey, maxInFlight: 3 } },
    models: { m: {} },
    settings: { workers: 2 },
  });
  try {
    const { key } = await gateway.customer();
    const gates = [gated(), gated()];
    upstream.script(...gates.map(({ behaviour }) => behaviour));
    const running = gates.map(() => stream(gateway.url, key));
    await Promise.all(gates.map(({ begun }) => begun));
    const third = await stream(gateway.url, key);
    expect(third.status).toBe(503);
    expect(third.body.toString()).toContain("upstream_overloaded");
    for (const gate of gates) gate.finish();
    for (const { status } of await Promise.all(running)) expect(status).toBe(200);
  } finally {
    await gateway.close();
    await upstream.close();
  }
});
