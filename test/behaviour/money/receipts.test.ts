/**
 * Receipts of every endpoint and unit: the units of a call at their prices are its charge, and
 * nothing else is taken.
 */
import { createHash } from "node:crypto";
import OpenAI, { toFile } from "openai";
import { afterAll, beforeAll, expect, it } from "vitest";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { PriceUnit } from "../../../gen/uas/billing/v1/receipt_pb.ts";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { PriceConfig } from "../../../src/config/config.ts";
import { renderTune } from "../../../src/provider/demo/audio.ts";
import {
  type Customer,
  type Gateway,
  priceDefault,
  startGateway,
  type TestModel,
} from "../../support/gateway.ts";
import { send } from "../../support/raw-http.ts";
import { newRequestId, openaiOf } from "../harness.ts";

const free: PriceConfig = {
  ...priceDefault,
  input: undefined,
  cachedInput: undefined,
  cacheWrite: undefined,
  output: undefined,
};
/** Nano-USD: of 1 M tokens, else of one. No two products of them are equal by accident. */
const prices = {
  tokens: { ...free, input: 3_000_000_000n, output: 7_000_000_000n },
  input: { ...free, input: 1_100_000_000n },
  image: { ...free, image: 40_000_001n },
  bySize: {
    ...free,
    image: 90_000_000n,
    images: [
      { size: "256x256", image: 11_000_000n },
      { size: "512x512", image: 90_000_000n },
    ],
  },
  second: { ...free, second: 100_003n },
  character: { ...free, character: 15_001n },
  search: { ...free, search: 2_000_003n },
  request: { ...free, request: 5_000_003n },
  all: { ...free, image: 40_000_001n, request: 5_000_003n },
} satisfies Record<string, PriceConfig>;

const kinds = {
  chat: [ModelType.TEXT, "instant"],
  image: [ModelType.IMAGE, "image"],
  audio: [ModelType.AUDIO, "audio"],
  embedding: [ModelType.EMBEDDING, "embedding"],
  rerank: [ModelType.RERANK, "rerank"],
  moderation: [ModelType.MODERATION, "moderation"],
} as const;

type Kind = keyof typeof kinds;
type Price = keyof typeof prices;

interface Asked {
  readonly openai: OpenAI;
  readonly model: string;
  readonly headers: { readonly "x-request-id": string };
}

const prompt = "A lighthouse at dawn";
const recording = () => toFile(renderTune(createHash("sha256").digest(), 3), "a.wav");
const file = async () => [await toFile(Buffer.from("89504e470d0a1a0a", "hex"), "a.png")];

/**
 * A call of each endpoint, the prices that its models can have, and the units that then stand in
 * its receipt.
 */
const rows: readonly (readonly [
  path: string,
  kind: Kind,
  units: Partial<Record<Price, readonly PriceUnit[]>>,
  call: (asked: Asked) => Promise<unknown>,
])[] = [
  [
    "/v1/images/generations",
    "image",
    {
      image: [PriceUnit.IMAGE],
      bySize: [PriceUnit.IMAGE],
      request: [PriceUnit.REQUEST],
      all: [PriceUnit.IMAGE, PriceUnit.REQUEST],
    },
    ({ openai, model, headers }) =>
      openai.images.generate({ model, prompt, n: 2, size: "256x256" }, { headers }),
  ],
  [
    "/v1/images/edits",
    "image",
    { image: [PriceUnit.IMAGE], bySize: [PriceUnit.IMAGE] },
    async ({ openai, model, headers }) =>
      openai.images.edit(
        { model, prompt, n: 2, image: await file(), size: "256x256" },
        { headers },
      ),
  ],
  [
    "/v1/audio/speech",
    "audio",
    {
      character: [PriceUnit.CHARACTER],
      second: [PriceUnit.SECOND],
      tokens: [PriceUnit.INPUT, PriceUnit.OUTPUT],
      request: [PriceUnit.REQUEST],
    },
    async ({ openai, model, headers }) => {
      const input = "Good morning, good afternoon and good night.";
      const voice = "alloy";
      const asked = { model, input, voice, response_format: "wav" } as const;
      const reply = await openai.audio.speech.create(asked, { headers });
      await reply.arrayBuffer();
    },
  ],
  [
    "/v1/audio/transcriptions",
    "audio",
    {
      second: [PriceUnit.SECOND],
      tokens: [PriceUnit.INPUT, PriceUnit.OUTPUT],
      request: [PriceUnit.REQUEST],
    },
    async ({ openai, model, headers }) =>
      openai.audio.transcriptions.create({ model, file: await recording() }, { headers }),
  ],
  [
    "/v1/audio/translations",
    "audio",
    { second: [PriceUnit.SECOND] },
    async ({ openai, model, headers }) =>
      openai.audio.translations.create({ model, file: await recording() }, { headers }),
  ],
  [
    "/v1/embeddings",
    "embedding",
    { input: [PriceUnit.INPUT], request: [PriceUnit.REQUEST] },
    ({ openai, model, headers }) =>
      openai.embeddings.create({ model, input: ["a red car", "winter"] }, { headers }),
  ],
  [
    "/v2/rerank",
    "rerank",
    {
      search: [PriceUnit.SEARCH],
      input: [PriceUnit.INPUT],
      request: [PriceUnit.REQUEST],
    },
    ({ openai, model, headers }) =>
      send(openai.baseURL.replace("/v1", "/v2/rerank"), {
        headers: {
          ...headers,
          authorization: `Bearer ${openai.apiKey}`,
          "content-type": "application/json",
        },
        body: JSON.stringify({ model, query: "cars", documents: ["a red car", "winter"] }),
      }),
  ],
  [
    "/v1/moderations",
    "moderation",
    { input: [PriceUnit.INPUT], request: [PriceUnit.REQUEST] },
    ({ openai, model, headers }) =>
      openai.moderations.create({ model, input: "I will hug you" }, { headers }),
  ],
  [
    "/v1/completions",
    "chat",
    { tokens: [PriceUnit.INPUT, PriceUnit.OUTPUT], request: [PriceUnit.REQUEST] },
    ({ openai, model, headers }) =>
      openai.completions.create({ model, prompt: "Once", max_tokens: 8 }, { headers }),
  ],
  [
    "/v1/chat/completions",
    "chat",
    { tokens: [PriceUnit.INPUT, PriceUnit.OUTPUT], request: [PriceUnit.REQUEST] },
    ({ openai, model, headers }) => {
      const messages = [{ role: "user" as const, content: "Hello" }];
      return openai.chat.completions.create({ model, messages }, { headers });
    },
  ],
];

const cases = rows.flatMap(([path, kind, units, call]) =>
  Object.entries(units).map(([price, lines]) => ({ path, kind, price, lines, call })),
);

let gateway: Gateway;
let customer: Customer;
beforeAll(async () => {
  const models = cases.map(({ kind, price }): [string, TestModel] => {
    const [type, name] = kinds[kind];
    const routes = [{ vendor: "demo", model: name }];
    return [`${kind}-${price}`, { type, routes, price: prices[price as Price] }];
  });
  gateway = await startGateway({
    taskTimings: { pollMs: 10, pollMsMax: 10 },
    vendors: { demo: { kind: "demo", baseUrl: "" } },
    models: Object.fromEntries(models),
  });
  customer = await gateway.customer();
});
afterAll(() => gateway?.close());

it.each(cases)(
  "the receipt of $path with a price by $price is its charge, line by line",
  async ({ path, kind, price, lines, call }) => {
    const { balance: before } = await gateway.money(customer.accountId);
    const id = newRequestId();
    const openai = openaiOf(gateway, customer.key);
    await call({ openai, model: `${kind}-${price}`, headers: { "x-request-id": id } });
    const { callId, cost, path: recorded, ending } = await gateway.call(id);
    expect([recorded, ending]).toEqual([path, CallEnding.COMPLETED]);
    const { receipt } = await gateway.callLog.getCall({ call: { case: "callId", value: callId } });
    expect(receipt?.lines.map(({ unit }) => unit)).toEqual(lines);
    let sum = 0n;
    for (const { quantity, price: unitPrice, per, amount } of receipt?.lines ?? []) {
      expect(Number(quantity)).toBeGreaterThan(0);
      // To the femto-USD: quantities have 6 digits, prices 9.
      const exact = (digits(quantity, 6) * digits(unitPrice, 9)) / BigInt(per);
      expect(digits(amount, 15)).toBe(exact);
      sum += exact;
    }
    expect(digits(receipt?.subtotal ?? "", 15)).toBe(sum);
    const charged = sum / 1_000_000n;
    expect(charged).toBeGreaterThan(0n);
    expect(receipt).toMatchObject({
      charged: true,
      amount: { amountNanos: charged },
      recomputed: { amountNanos: charged },
    });
    expect(cost?.amountNanos).toBe(charged);
    expect(receipt?.entries.map(({ amount }) => amount?.amountNanos)).toEqual([-charged]);
    const money = await gateway.money(customer.accountId);
    expect(money).toMatchObject({ held: 0n, balance: before - charged });
  },
);

/** A decimal text as an integer with so many digits behind the point. */
function digits(text: string, count: number): bigint {
  const [whole = "0", fraction = ""] = text.split(".");
  if (fraction.length > count) throw new Error(`${text} has more than ${count} digits`);
  return BigInt(whole + fraction.padEnd(count, "0"));
}
