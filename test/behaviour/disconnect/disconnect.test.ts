/**
 * R-TXT-9, R-MON-8: the client leaves, and its vendor's work is stopped at once or read to its end.
 */
import { createClient } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { Role } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { InferenceService } from "../../../gen/uas/inference/v1/inference_service_pb.ts";
import { UsageSource } from "../../../gen/uas/type/v1/usage_pb.ts";
import { detachedRepliesMax } from "../../../src/core/limits.ts";
import { bearer, withTransport } from "../rpc/harness.ts";
import { modelOf, useStyleGateway, type VendorStyle } from "../../support/style-gateway.ts";
import type { Behaviour } from "../../support/upstream/exchange.ts";
import { heldBack } from "../../support/upstream/held-back.ts";
import { newRequestId } from "../harness.ts";
import { detachedReplies, Leaver } from "./leaver.ts";
import {
  type Caller,
  callerPaths,
  callerRequest,
  reportedCost,
  strictAnswer,
} from "./vanishing.ts";

const fixture = useStyleGateway();

/** A client of a caller's style. */
function leaver(
  caller: Caller,
  { key, model, stream }: { key: string; model: string; stream: boolean },
): Leaver {
  const url = new URL(callerPaths[caller], fixture.gateway.url);
  return new Leaver(url, { key, body: callerRequest(caller, { model, stream, text: "greet" }) });
}

const drained = (): Promise<number> => detachedReplies(fixture.gateway);

/** Makes an answer wait, until `open`. */
function held(style: VendorStyle, part: number): { behaviour: Behaviour; open: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { behaviour: heldBack(strictAnswer(style), { part, until: promise }), open: resolve };
}

const ways: ReadonlyArray<readonly [Caller, VendorStyle]> = [
  ["chat", "chat"],
  ["responses", "responses"],
  ["messages", "messages"],
  ["chat", "messages"],
  ["responses", "gemini"],
  ["messages", "chat"],
];

describe.each(ways)("%s from %s", (caller, vendor) => {
  it.each([
    ["a stream in its middle", true, 0.6],
    ["a stream before its head", true, -1],
    ["a whole reply", false, -1],
  ])("drains %s, and charges what the vendor reported", async (_what, stream, part) => {
    const upstream = fixture.upstream(vendor);
    const { behaviour, open } = held(vendor, part);
    upstream.script(behaviour);
    const { key, accountId } = await fixture.gateway.customer();
    const client = leaver(caller, { key, model: modelOf(vendor, "drain"), stream });
    const request = await upstream.request(1);
    if (part > 0) await client.got("Hello");
    await client.leave();
    await expect.poll(drained).toBe(1);
    open();
    expect(await request.left).toBe(false);
    const call = await fixture.gateway.call(client.requestId);
    expect(call).toMatchObject({
      ending: CallEnding.CLIENT_GONE,
      usageSource: UsageSource.UPSTREAM,
      status: part > 0 ? 200 : 499,
    });
    expect(call.cost?.amountNanos).toBe(reportedCost);
    expect((await fixture.gateway.money(accountId)).balance).toBe(100_000_000_000n - reportedCost);
    expect(await drained()).toBe(0);
  });

  it("aborts at once where that is the vendor's policy", async () => {
    const upstream = fixture.upstream(vendor);
    upstream.script(held(vendor, 0.6).behaviour);
    const { key } = await fixture.gateway.customer();
    const client = leaver(caller, { key, model: modelOf(vendor, "abort"), stream: true });
    const request = await upstream.request(1);
    await client.got("Hello");
    await client.leave();
    expect(await request.left).toBe(true);
    const call = await fixture.gateway.call(client.requestId);
    expect(call.ending).toBe(CallEnding.CLIENT_GONE);
    expect(call.cost?.amountNanos).toBeGreaterThan(0n);
  });
});

describe("draining", () => {
  it("is for typed callers too", async () => {
    const upstream = fixture.upstream("messages");
    const { behaviour, open } = held("messages", 0.6);
    upstream.script(behaviour);
    const { key } = await fixture.gateway.customer();
    const [requestId, leave] = [newRequestId(), new AbortController()];
    const generation = {
      model: modelOf("messages", "drain"),
      conversation: {
        turns: [
          { role: Role.USER, parts: [{ kind: { case: "text", value: { text: "hi" } } as const }] },
        ],
      },
    };
    const read = withTransport(fixture.gateway.internalUrl, "grpc", async (transport) => {
      const events = createClient(InferenceService, transport).streamGenerate(
        { generation },
        { headers: { ...bearer(key), "x-request-id": requestId }, signal: leave.signal },
      );
      for await (const { event } of events) if (event?.kind.case === "partDelta") leave.abort();
    });
    await expect(read).rejects.toThrow("canceled");
    await expect.poll(drained).toBe(1);
    open();
    expect(await upstream.last().left).toBe(false);
    const call = await fixture.gateway.call(requestId);
    expect(call).toMatchObject({
      ending: CallEnding.CLIENT_GONE,
      usageSource: UsageSource.UPSTREAM,
    });
    expect(call.cost?.amountNanos).toBe(reportedCost);
  });

  it("charges what came where the vendor then fails", async () => {
    const upstream = fixture.upstream("chat");
    const { promise, resolve } = Promise.withResolvers<void>();
    upstream.script(async (exchange) => {
      const written = heldBack(strictAnswer("chat"), { part: 0.6, until: new Promise(() => {}) })(
        exchange,
      );
      await promise;
      exchange.response.destroy();
      await written;
    });
    const { key } = await fixture.gateway.customer();
    const client = leaver("chat", { key, model: modelOf("chat", "drain"), stream: true });
    await client.got("Hello");
    await client.leave();
    await expect.poll(drained).toBe(1);
    resolve();
    const call = await fixture.gateway.call(client.requestId);
    expect(call).toMatchObject({
      ending: CallEnding.CLIENT_GONE,
      usageSource: UsageSource.ESTIMATED,
    });
    expect(call.cost?.amountNanos).toBeGreaterThan(0n);
  });

  it("is for a limited number at once: the vendors of others are stopped", async () => {
    const upstream = fixture.upstream("chat");
    const { behaviour, open } = held("chat", 0.6);
    upstream.always(behaviour);
    const { key } = await fixture.gateway.customer();
    const clients = Array.from({ length: detachedRepliesMax + 3 }, () =>
      leaver("chat", { key, model: modelOf("chat", "drain"), stream: true }),
    );
    await Promise.all(clients.map((client) => client.got("Hello")));
    for (const client of clients) await client.leave();
    await expect.poll(drained).toBe(detachedRepliesMax);
    // The gateway notices each of them at some time; no other call can end meanwhile.
    await expect
      .poll(async () => (await Promise.all(upstream.requests.map(hasLeft))).filter(Boolean).length)
      .toBe(3);
    open();
    const calls = await Promise.all(
      clients.map(({ requestId }) => fixture.gateway.call(requestId)),
    );
    expect(calls.every(({ ending }) => ending === CallEnding.CLIENT_GONE)).toBe(true);
    const sources = calls.map(({ usageSource }) => usageSource);
    expect(sources.filter((source) => source === UsageSource.UPSTREAM)).toHaveLength(
      detachedRepliesMax,
    );
    expect(sources.filter((source) => source === UsageSource.ESTIMATED)).toHaveLength(3);
  });
});

/** Whether the gateway has left already. */
function hasLeft({ left }: { readonly left: Promise<boolean> }): Promise<boolean> {
  return Promise.race([left, Promise.resolve(false)]);
}
