/**
 * Running streams if something else ends: the database for a while, or the gateway (R-MON-5,
 * R-TXT-9).
 */
import { Client } from "pg";
import { expect, it } from "vitest";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { UsageSource } from "../../../gen/uas/type/v1/usage_pb.ts";
import { createTestDatabase } from "../../support/database.ts";
import { type FaultProxy, startFaultProxy } from "../../support/fault-proxy.ts";
import { type Gateway, publicModel, startGateway } from "../../support/gateway.ts";
import { answer } from "../../support/upstream/behaviour.ts";
import { heldBack } from "../../support/upstream/held-back.ts";
import { startUpstream, type Upstream } from "../../support/upstream/upstream.ts";

const requestId = "a-stream";

/** Begins a stream and reads its first bytes. */
async function begin(gateway: Gateway, signal?: AbortSignal) {
  const { key } = await gateway.customer();
  const messages = [{ role: "user", content: "Hi" }];
  const reply = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      "x-request-id": requestId,
    },
    body: JSON.stringify({ model: publicModel, messages, stream: true }),
    signal: signal ?? null,
  });
  const reader = (reply.body as ReadableStream<Uint8Array>).getReader();
  const { value } = await reader.read();
  return { reader, first: Buffer.from(value ?? []).toString() };
}

/** Holds an answer back in its middle, until `open`. */
function held(upstream: Upstream, text: readonly string[]): () => void {
  const { promise: until, resolve: open } = Promise.withResolvers<void>();
  upstream.script(heldBack(answer({ text }), { part: 0.1, until }));
  return open;
}

it("a stream goes on without its database, beyond what it holds, and is charged when that is back", async () => {
  const upstream = await startUpstream();
  const { baseUrl, secret } = upstream;
  let proxy: FaultProxy | undefined;
  const gateway = await startGateway({
    vendors: { sim: { baseUrl, apiKey: secret } },
    models: { [publicModel]: { holdOutputTokens: 16 } },
    databaseAt: async (url) => {
      proxy = await startFaultProxy(url);
      return proxy.url;
    },
  });
  try {
    // 400 tokens by their bytes, of which 16 are held for.
    const text = Array.from({ length: 100 }, (_, i) => `piece number ${100 + i}`);
    const open = held(upstream, text);
    const { reader, first } = await begin(gateway);
    proxy?.hang();
    open();
    let got = first;
    const decoder = new TextDecoder();
    while (!got.includes("[DONE]")) {
      const { value, done } = await reader.read();
      if (done) break;
      got += decoder.decode(value, { stream: true });
    }
    for (const piece of text) expect(got).toContain(piece);
    expect(got).toContain("[DONE]");
    proxy?.resume();
    const call = await gateway.call(requestId);
    expect(call).toMatchObject({
      ending: CallEnding.COMPLETED,
      usageSource: UsageSource.UPSTREAM,
    });
    expect(call.cost?.amountNanos).toBe(11n * 250n + 7n * 2_000n);
    await reader.cancel();
  } finally {
    await gateway.close();
    await proxy?.close();
    await upstream.close();
  }
});

it("a stream without its client is read on until the gateway stops, and then charged for what came", async () => {
  const upstream = await startUpstream();
  const { baseUrl, secret } = upstream;
  const database = await createTestDatabase();
  const gateway = await startGateway({
    database,
    vendors: { sim: { baseUrl, apiKey: secret, onDisconnect: "drain" } },
  });
  try {
    held(
      upstream,
      Array.from({ length: 20 }, () => "some text"),
    );
    const leave = new AbortController();
    await begin(gateway, leave.signal);
    leave.abort();
    const metric = gateway.app.metrics.registry.getSingleMetric("uas_replies_drained");
    await expect.poll(async () => (await metric?.get())?.values[0]?.value).toBe(1);
    await gateway.app.close({ drainMs: 0 });
    expect(await upstream.last().left).toBe(true);
    const client = new Client({ connectionString: database.url });
    await client.connect();
    const { rows } = await client.query("select ending, cost::text, usage_source from call");
    await client.end();
    expect(rows).toMatchObject([
      { ending: CallEnding.CLIENT_GONE, usage_source: UsageSource.ESTIMATED },
    ]);
    expect(BigInt(rows[0].cost)).toBeGreaterThan(0n);
  } finally {
    await gateway.close();
    await upstream.close();
  }
});
