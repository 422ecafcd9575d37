/**
 * Stop sequences at vendors that take none: the gateway ends the reply, stops the vendor, and
 * charges what came.
 */
import { describe, expect, it } from "vitest";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { UsageSource } from "../../../gen/uas/type/v1/usage_pb.ts";
import { send } from "../../support/raw-http.ts";
import { modelOf, useStyleGateway } from "../../support/style-gateway.ts";
import { endless, endlessPiece } from "../../support/upstream/endless.ts";
import { dataOf, newRequestId } from "../harness.ts";

const fixture = useStyleGateway();

const callers = {
  chat: {
    path: "/v1/chat/completions",
    body: {
      messages: [{ role: "user", content: "Go on" }],
      stream_options: { include_usage: true },
    },
    member: "stop",
  },
  messages: {
    path: "/v1/messages",
    body: { max_tokens: 1_000, messages: [{ role: "user", content: "Go on" }] },
    member: "stop_sequences",
  },
} as const;

/** The vendor repeats its piece indefinitely: the sequence completes with the second one. */
const stop = `:)${endlessPiece}go`;

/** Ends of streams. */
const lasts = { chat: "data: [DONE]", messages: 'data: {"type":"message_stop"}' };

interface Told {
  readonly choices?: readonly {
    readonly delta: { readonly content?: string };
    readonly finish_reason: string | null;
  }[];
  readonly type?: string;
  readonly delta?: { readonly text?: string; readonly stop_sequence?: string };
  readonly usage?: null | { readonly completion_tokens?: number; readonly output_tokens?: number };
}

describe.each(["chat", "messages"] as const)("a stream of %s", (caller) => {
  it("from a vendor that would never end ends cleanly at the stop sequence, and its delivered tokens are charged", async () => {
    const { path, body, member } = callers[caller];
    const upstream = fixture.upstream("responses");
    upstream.script(endless("responses", "text"));
    const requestId = newRequestId();
    const { key } = await fixture.gateway.customer();
    const model = modelOf("responses");
    const sent = { ...body, model, stream: true, [member]: ["never", stop] };
    const reply = await send(`${fixture.gateway.url}${path}`, {
      headers: {
        authorization: `Bearer ${key}`,
        "content-type": "application/json",
        "x-request-id": requestId,
      },
      body: JSON.stringify(sent),
    });
    expect(reply, reply.body.toString()).toMatchObject({ status: 200, isCut: false });
    expect(await upstream.last().left).toBe(true);
    const events = dataOf(reply.body)
      .filter((data) => data.startsWith("{"))
      .map((data) => JSON.parse(data) as Told);
    const text = events
      .map(({ choices, delta }) => choices?.[0]?.delta.content ?? delta?.text ?? "")
      .join("");
    expect(text).toBe("go on ");
    const end = caller === "chat" ? '"finish_reason":"stop"' : `"stop_sequence":"${stop}"`;
    expect(reply.body.toString()).toContain(end);
    expect(reply.body.toString().trimEnd().endsWith(lasts[caller])).toBe(true);
    const told = events.findLast(({ usage }) => usage !== undefined && usage !== null)?.usage;
    const call = await fixture.gateway.call(requestId);
    expect(call).toMatchObject({
      ending: CallEnding.COMPLETED,
      usageSource: UsageSource.ESTIMATED,
    });
    expect(call.usage?.outputTokens).toBe(2);
    expect(told?.completion_tokens ?? told?.output_tokens).toBe(2);
  });

  it("that a stop sequence ends before any text is charged the input, which the vendor has read", async () => {
    const { path, body, member } = callers[caller];
    fixture.upstream("responses").script(endless("responses", "text"));
    const requestId = newRequestId();
    const { key } = await fixture.gateway.customer();
    const sent = { ...body, model: modelOf("responses"), stream: true, [member]: ["go"] };
    const reply = await send(`${fixture.gateway.url}${path}`, {
      headers: {
        authorization: `Bearer ${key}`,
        "content-type": "application/json",
        "x-request-id": requestId,
      },
      body: JSON.stringify(sent),
    });
    expect(reply).toMatchObject({ status: 200, isCut: false });
    const call = await fixture.gateway.call(requestId);
    expect(call.usage).toMatchObject({ outputTokens: 0, inputTokens: expect.any(Number) });
    expect(call.usage?.inputTokens).toBeGreaterThan(0);
    expect(call.cost?.amountNanos).toBeGreaterThan(0n);
  });
});
