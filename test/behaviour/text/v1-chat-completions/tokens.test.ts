/**
 * Tokens that no vendor reported: counted if the model's tokenizer is public, and only if the
 * result matters.
 */
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { describe, expect, it } from "vitest";
import { UsageSource } from "../../../../gen/uas/type/v1/usage_pb.ts";
import { answer } from "../../../support/upstream/behaviour.ts";
import { errorOf, json, newRequestId, useGateway } from "../../harness.ts";
import type { RecordedCall } from "../../../support/gateway.ts";

const models = ["gpt-4o-2024-08-06", "vendor-model"] as const;
const [known, unknown] = models;
const fixture = useGateway(
  ({ baseUrl, secret }) => ({
    vendors: { sim: { baseUrl, apiKey: secret } },
    models: {
      known: { routes: [{ vendor: "sim", model: known }] },
      unknown: { routes: [{ vendor: "sim", model: unknown }] },
    },
  }),
  { models },
);

const text = "The quick brown fox jumps over the lazy dog. ".repeat(40);

function asking(model: string): { model: string; max_tokens: number; messages: object[] } {
  return { model, max_tokens: 1, messages: [{ role: "user", content: text }] };
}

/** Three for each message and its role, three for the reply. */
const exact = BigInt(countTokens(text) + 1 + 3 + 3);

async function called(body: object, key = fixture.customer.key): Promise<RecordedCall> {
  const id = newRequestId();
  await fixture.chat(body, { "x-request-id": id, authorization: `Bearer ${key}` });
  return fixture.gateway.call(id);
}

describe("the hold (R-MON-4)", () => {
  it("the hold is of the byte bound if the balance covers it, for every tokenizer", async () => {
    const ofKnown = await called(asking("known"));
    const ofUnknown = await called(asking("unknown"));
    expect(ofKnown.held?.amountNanos).toBeGreaterThan(exact * 250n * 2n);
    const longer = BigInt(known.length - unknown.length);
    const more = (ofKnown.held?.amountNanos ?? 0n) - (ofUnknown.held?.amountNanos ?? 0n);
    expect(more).toBeGreaterThan(0n);
    expect(more).toBeLessThanOrEqual(longer * 4n * 250n);
  });

  it("the hold is of the exact count where it does not, to the nano-USD", async () => {
    const needed = exact * 250n + 2_000n;
    const customer = await fixture.gateway.customer({ balanceNanos: needed });
    const call = await called(asking("known"), customer.key);
    expect(call).toMatchObject({ status: 200 });
    expect(call.held?.amountNanos).toBe(needed);
  });

  it("the hold is refused by the exact figures", async () => {
    const needed = exact * 250n + 2_000n;
    const { key } = await fixture.gateway.customer({ balanceNanos: needed - 1n });
    const reply = await fixture.chat(asking("known"), { authorization: `Bearer ${key}` });
    expect(reply.status).toBe(402);
    const inUsd = (nanos: bigint): string =>
      `0.${String(nanos).padStart(9, "0").replace(/0+$/, "")}`;
    expect(errorOf(reply)["message"]).toContain(
      `needs ${inUsd(needed)} USD, ${inUsd(needed - 1n)} USD`,
    );
  });

  it("the hold is refused by the bound if the tokenizer is unknown", async () => {
    const { key } = await fixture.gateway.customer({ balanceNanos: exact * 250n + 2_000n });
    const reply = await fixture.chat(asking("unknown"), { authorization: `Bearer ${key}` });
    expect(reply.status).toBe(402);
  });
});

describe("the charge where the vendor reports nothing (R-MON-8)", () => {
  const words = ["Hello", " there", ",  world", " 你好", " <|endoftext|>"];

  it("counts the request, and a reply that came whole", async () => {
    fixture.upstream.script(answer({ text: words, usage: null }));
    const call = await called(asking("known"));
    expect(call.usageSource).toBe(UsageSource.ESTIMATED);
    expect(call.usage?.inputTokens).toBe(Number(exact));
    const output = countTokens(words.join(""), { disallowedSpecial: new Set() });
    expect(call.usage?.outputTokens).toBe(output);
    expect(call.cost?.amountNanos).toBe(exact * 250n + BigInt(output) * 2_000n);
  });

  it("counts the request of a stream; its text by its bytes", async () => {
    fixture.upstream.script(answer({ text: ["12345678", "9"], usage: null }));
    const call = await called({ ...asking("known"), stream: true });
    expect(call.usageSource).toBe(UsageSource.ESTIMATED);
    expect(call.usage?.inputTokens).toBe(Number(exact));
    expect(call.usage?.outputTokens).toBeGreaterThanOrEqual(3);
    expect(call.usage?.outputTokens).toBeLessThanOrEqual(5);
  });

  it("takes a quarter of the text's bytes if the tokenizer is unknown; an image is no text", async () => {
    const url = `data:image/png;base64,${"A".repeat(100_000)}`;
    const picture = { type: "image_url", image_url: { url } };
    const body = { model: "unknown", messages: [{ role: "user", content: [picture] }] };
    fixture.upstream.script(answer({ text: ["12345678"], usage: null }));
    const call = await called(body);
    const textBytes = JSON.stringify(body).length - url.length;
    expect(call.usage?.inputTokens).toBe(765 + Math.ceil(textBytes / 4));
  });

  it("never touches what the vendor reported", async () => {
    const call = await called(asking("known"));
    expect(call.usageSource).toBe(UsageSource.UPSTREAM);
    expect(call.usage).toMatchObject({ inputTokens: 11, outputTokens: 7 });
  });
});

it("count_tokens: counts exactly for a model whose vendor cannot, if its tokenizer is public", async () => {
  const body = JSON.stringify({ model: "known", messages: [{ role: "user", content: text }] });
  const count = async () => json(await fixture.send("/v1/messages/count_tokens", { body }));
  // An estimate, while the tokenizer is being loaded on a busy machine.
  await expect.poll(count, { timeout: 30_000 }).toEqual({ input_tokens: Number(exact) });
});
