/**
 * R-MON-11: the default policy of a disconnect reads on for the vendor's own count, and charges
 * what it was sent.
 */
import { describe, expect, it } from "vitest";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { UsageSource } from "../../../gen/uas/type/v1/usage_pb.ts";
import { priceDefault } from "../../support/gateway.ts";
import { answer, hang } from "../../support/upstream/behaviour.ts";
import type { Behaviour } from "../../support/upstream/exchange.ts";
import { heldBack } from "../../support/upstream/held-back.ts";
import { ask, useGateway } from "../harness.ts";
import { detachedReplies, Leaver } from "./leaver.ts";

const vendorModel = "vendor-model";

const fixture = useGateway(({ baseUrl, secret }) => ({
  vendors: {
    grace: { baseUrl, apiKey: secret, onDisconnect: "grace", disconnectGraceMs: 60_000 },
    short: { baseUrl, apiKey: secret, onDisconnect: "grace", disconnectGraceMs: 1 },
  },
  models: {
    grace: { routes: [{ vendor: "grace", model: vendorModel }] },
    short: { routes: [{ vendor: "short", model: vendorModel }] },
    thinker: { routes: [{ vendor: "short", model: vendorModel }], isReasoning: true },
  },
}));

const nanosOf = (price: bigint | undefined, tokens: number): bigint =>
  ((price ?? 0n) * BigInt(tokens)) / 1_000_000n;

/** Four thousand tokens of hidden reasoning, of which the client sees twelve tokens of text. */
const usage = {
  prompt_tokens: 40,
  completion_tokens: 4_012,
  total_tokens: 4_052,
  completion_tokens_details: { reasoning_tokens: 4_000 },
};
const reportedNanos = nanosOf(priceDefault.input, 40) + nanosOf(priceDefault.output, 4_012);

/** Sends a part of the reply, and the rest once it is opened. */
function held(part: number): { behaviour: Behaviour; open: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  const whole = answer({ text: ["Hello", " there", "!"], usage });
  return { behaviour: heldBack(whole, { part, until: promise }), open: resolve };
}

/**
 * Asks for a stream and disconnects at the text or the moment, or once the vendor has the request.
 */
async function askAndLeave(
  model: string,
  leaveAt: string | Promise<void> | undefined,
  extra: object = {},
): Promise<string> {
  const url = new URL("/v1/chat/completions", fixture.gateway.url);
  const body = { ...ask, stream: true, ...extra, model };
  const client = new Leaver(url, { key: fixture.customer.key, body });
  await fixture.upstream.request(1);
  if (typeof leaveAt === "string") await client.got(leaveAt);
  else await leaveAt;
  await client.leave();
  return client.requestId;
}

const detached = (): Promise<number> => detachedReplies(fixture.gateway);

describe("a client that disconnects after the first content", () => {
  it("pays for hidden reasoning that the vendor reports within the grace", async () => {
    const { behaviour, open } = held(0.6);
    fixture.upstream.script(behaviour);
    const requestId = await askAndLeave("grace", "Hello");
    await expect.poll(detached).toBe(1);
    open();
    const call = await fixture.gateway.call(requestId);
    expect(call).toMatchObject({
      ending: CallEnding.CLIENT_GONE,
      usageSource: UsageSource.UPSTREAM,
      usage: { outputTokens: 4_012, reasoningTokens: 4_000 },
    });
    expect(call.cost?.amountNanos).toBe(reportedNanos);
  });

  it("pays the input and the text that came, estimated, once the grace is over", async () => {
    const { behaviour } = held(0.6);
    fixture.upstream.script(behaviour);
    const requestId = await askAndLeave("short", "Hello");
    const call = await fixture.gateway.call(requestId);
    expect(await fixture.upstream.last().left).toBe(true);
    expect(call).toMatchObject({
      ending: CallEnding.CLIENT_GONE,
      usageSource: UsageSource.ESTIMATED,
    });
    const { inputTokens = 0, outputTokens = 0 } = call.usage ?? {};
    expect(inputTokens).toBeGreaterThan(0);
    expect(outputTokens).toBeGreaterThan(0);
    expect(call.cost?.amountNanos).toBe(
      nanosOf(priceDefault.input, inputTokens) + nanosOf(priceDefault.output, outputTokens),
    );
  });

  it("never pays an estimate beyond the limit of the request, and marks no route by it", async () => {
    fixture.upstream.script(
      heldBack(answer({ text: ["Hello", "-".repeat(6_400), "!"] }), {
        part: 0.98,
        until: new Promise(() => {}),
      }),
    );
    const requestId = await askAndLeave("short", "-----", { max_tokens: 100 });
    const call = await fixture.gateway.call(requestId);
    expect(call).toMatchObject({
      usageSource: UsageSource.ESTIMATED,
      usage: { outputTokens: 100 },
    });
    expect(fixture.gateway.log.join("\n")).not.toContain("ignores the output limit");
  });

  it("a reply of a model that reasons is read to its end after a disconnect, however short the grace", async () => {
    const { behaviour, open } = held(0.6);
    fixture.upstream.script(behaviour);
    const requestId = await askAndLeave("thinker", "Hello");
    await expect.poll(detached).toBe(1);
    open();
    const call = await fixture.gateway.call(requestId);
    expect(call.usageSource).toBe(UsageSource.UPSTREAM);
    expect(call.cost?.amountNanos).toBe(reportedNanos);
  });
});

describe("a client that disconnects before any content", () => {
  it("pays for a text that is not streamed, which its vendor makes before it sends any of it", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const whole = answer({ text: ["Hello", " there", "!"], usage });
    fixture.upstream.script(async (exchange) => {
      await promise;
      await whole(exchange);
    });
    const requestId = await askAndLeave("grace", undefined, { stream: false });
    await expect.poll(detached).toBe(1);
    resolve();
    const call = await fixture.gateway.call(requestId);
    expect(call).toMatchObject({
      ending: CallEnding.CLIENT_GONE,
      usageSource: UsageSource.UPSTREAM,
      usage: { outputTokens: 4_012 },
    });
    expect(call.cost?.amountNanos).toBe(reportedNanos);
  });

  it("pays only the input for a text that does not come within the grace period, and the vendor is stopped", async () => {
    fixture.upstream.script(hang);
    const requestId = await askAndLeave("short", undefined, { stream: false });
    const call = await fixture.gateway.call(requestId);
    expect(call).toMatchObject({
      ending: CallEnding.CLIENT_GONE,
      usageSource: UsageSource.ESTIMATED,
      usage: { outputTokens: 0 },
    });
    expect(call.cost?.amountNanos).toBeGreaterThan(0n);
  });

  it("pays the input that the vendor has, and the vendor is stopped", async () => {
    fixture.upstream.script(hang);
    const requestId = await askAndLeave("grace", undefined);
    expect(await fixture.upstream.last().left).toBe(true);
    const call = await fixture.gateway.call(requestId);
    expect(call).toMatchObject({
      ending: CallEnding.CLIENT_GONE,
      usageSource: UsageSource.ESTIMATED,
      usage: { outputTokens: 0 },
    });
    const { inputTokens = 0 } = call.usage ?? {};
    expect(inputTokens).toBeGreaterThan(0);
    expect(call.cost?.amountNanos).toBe(nanosOf(priceDefault.input, inputTokens));
  });

  it("pays nothing where the vendor has begun to refuse the request", async () => {
    const begun = Promise.withResolvers<void>();
    fixture.upstream.script(async (exchange) => {
      exchange.response.writeHead(429, { "content-type": "application/json" });
      await exchange.write(Buffer.from('{"error":'));
      begun.resolve();
      await hang(exchange);
    });
    const requestId = await askAndLeave("grace", begun.promise);
    expect(await fixture.upstream.last().left).toBe(true);
    const call = await fixture.gateway.call(requestId);
    expect(call.cost?.amountNanos).toBe(0n);
  });

  it("pays nothing where the vendor then refuses the request", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    fixture.upstream.script(async (exchange) => {
      await promise;
      exchange.response.writeHead(400, { "content-type": "application/json" });
      exchange.response.end('{"error":{"message":"no","type":"invalid_request_error"}}');
    });
    const requestId = await askAndLeave("thinker", undefined);
    await expect.poll(detached).toBe(1);
    resolve();
    const call = await fixture.gateway.call(requestId);
    expect(call.cost?.amountNanos).toBe(0n);
  });
});
