/**
 * R-TSK-6, R-MON-11: what a text costs when it is stopped. Real HTTP; the stop comes with the text
 * itself.
 */
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, it, test } from "vitest";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { ModelConfig, VendorConfig } from "../../../src/config/config.ts";
import { exchangeText } from "../../../src/calls/adapters/text-exchange.ts";
import { plannedRoute, textGeneration } from "../../../src/calls/adapters/text-task.ts";
import { TypedRequest } from "../../../src/calls/adapters/typed-adapter.ts";
import { Targets } from "../../../src/routing/targets.ts";
import { createUpstream } from "../../../src/routing/upstream.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { createMetrics } from "../../../src/observe/metrics.ts";
import { vendorKinds } from "../../../src/provider/index.ts";
import { TaskStopped } from "../../../src/provider/task.ts";
import type { Vendor } from "../../../src/provider/vendor.ts";
import { always, priceDefault } from "../../support/gateway.ts";
import { answer, byteStream, hang } from "../../support/upstream/behaviour.ts";
import type { Behaviour } from "../../support/upstream/exchange.ts";
import { heldBack } from "../../support/upstream/held-back.ts";
import { strictMessages } from "../../support/upstream/messages-strict.ts";
import { startUpstream, type Upstream as Simulated } from "../../support/upstream/upstream.ts";

const open: Vendor[] = [];
const sims: Simulated[] = [];
let chat: Simulated;
let messages: Simulated;
beforeAll(async () => {
  chat = await startUpstream();
  messages = await startUpstream({ style: strictMessages() });
  sims.push(chat, messages);
});
afterAll(async () => {
  await Promise.all(open.map((vendor) => vendor.close()));
  await Promise.all(sims.map((sim) => sim.close()));
});

const prompt = "Hello";

/**
 * Returns the result of a text that is stopped with its first words, or without any if it has none.
 */
async function stopped(
  kind: string,
  sim: Simulated,
  behaviour: Behaviour,
  { onDisconnect = "abort", lastSignal, onStop }: ReadOn = {},
): Promise<unknown> {
  const config: VendorConfig = { ...configOf(kind, sim), onDisconnect };
  const vendor = vendorKinds[kind]?.create(config);
  if (vendor === undefined) throw new Error(`no kind ${kind}`);
  open.push(vendor);
  const route = { vendor: "v", model: "vendor-model" };
  const model: ModelConfig = {
    key: "m",
    name: "m",
    type: ModelType.TEXT,
    routes: [route],
    maxOutputTokens: 100,
    holdOutputTokens: 100,
    prices: always(priceDefault),
  };
  const [metrics, log] = [createMetrics(), pino({ level: "silent" })];
  const vendors = new Map([["v", { config, clients: [vendor] as const }]]);
  const targets = new Targets({ vendors, metrics, log });
  const upstream = createUpstream({ targets, metrics, log });
  const stop = new AbortController();
  sim.clear();
  sim.script(behaviour);
  const asking = exchangeText(upstream, {
    request: new TypedRequest({ ...textGeneration({ prompt }, "m"), stream: true }, systemClock),
    model,
    planned: plannedRoute(upstream, { model, route, dialect: undefined }),
    signal: stop.signal,
    lastSignal,
    take(events) {
      expect(stop.signal.aborted).toBe(false);
      if (!events.some(({ kind: { case: what } }) => what === "partDelta")) return;
      stop.abort();
      onStop?.();
    },
  }).catch((error: unknown) => error);
  await sim.request(1);
  if (behaviour === hang) stop.abort();
  return asking;
}

/** Reading of a stopped text. */
interface ReadOn {
  readonly onDisconnect?: VendorConfig["onDisconnect"];
  readonly lastSignal?: AbortSignal;
  /** Called when it is stopped. */
  readonly onStop?: () => void;
}

function configOf(kind: string, sim: Simulated): VendorConfig {
  return {
    name: "v",
    kind,
    baseUrl: sim.baseUrl,
    apiKey: sim.secret,
    dialects: undefined,
    timeouts: { connectMs: 2_000, firstByteMs: 5_000, idleMs: 5_000 },
    maxInFlight: undefined,
    pollsPerSecond: undefined,
    onDisconnect: "abort",
    nativePrefix: undefined,
    runBaseUrl: undefined,
  };
}

test("a stopped text costs the input that its vendor reported, and the output as estimated", async () => {
  const start = {
    type: "message_start",
    message: {
      id: "msg_1",
      type: "message",
      role: "assistant",
      model: "vendor-model",
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: 25, output_tokens: 1 },
    },
  };
  const block = {
    type: "content_block_start",
    index: 0,
    content_block: { type: "text", text: "" },
  };
  const text = { type: "text_delta", text: "Twelve bytes" };
  const delta = { type: "content_block_delta", index: 0, delta: text };
  const events = [start, block, delta].map(
    (event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`,
  );
  const error = await stopped("anthropic", messages, byteStream(events, { ending: "hang" }));
  expect(error).toBeInstanceOf(TaskStopped);
  expect(error).toMatchObject({ reportedCost: { usage: { inputTokens: 25, outputTokens: 3 } } });
});

test("a stopped text is estimated where its vendor reported nothing", async () => {
  const behaviour = answer({ text: ["Twelve bytes", " more"], cutAfter: 2, ending: "hang" });
  const error = await stopped("openai-compatible", chat, behaviour);
  expect(error).toBeInstanceOf(TaskStopped);
  expect(error).toMatchObject({ reportedCost: { usage: { outputTokens: 3, isEstimated: true } } });
  const input = Math.ceil(chat.last().body.length / 4);
  expect(error).toMatchObject({ reportedCost: { usage: { inputTokens: input } } });
});

test("a stopped text without content costs its input, once the request was sent (R-MON-11)", async () => {
  const error = await stopped("openai-compatible", chat, hang);
  expect(error).toBeInstanceOf(TaskStopped);
  const inputTokens = Math.ceil(chat.last().body.length / 4);
  expect(error).toMatchObject({ reportedCost: { usage: { inputTokens, outputTokens: 0 } } });
});

describe("what is read on after it was stopped, as a reply to a client that disconnected (R-MON-11)", () => {
  const neverLast = new AbortController().signal;
  const pieces = ["Twelve bytes", " more", " and more"];
  const usage = { prompt_tokens: 25, completion_tokens: 90, total_tokens: 115 };
  const endlessUsage = { prompt_tokens: 25, completion_tokens: 9_000, total_tokens: 9_025 };

  it.each([
    ["costs what its vendor counts by the end", usage, 90],
    ["costs at most what its model can generate (R-MON-15)", endlessUsage, 100],
  ])("%s", async (_name, counted, outputTokens) => {
    const passed = Promise.withResolvers<void>();
    const made = answer({ text: pieces, usage: counted });
    const behaviour = heldBack(made, { part: 0.5, until: passed.promise });
    const error = await stopped("openai-compatible", chat, behaviour, {
      onDisconnect: "grace",
      lastSignal: neverLast,
      onStop: passed.resolve,
    });
    expect(error).toBeInstanceOf(TaskStopped);
    expect(error).toMatchObject({
      reportedCost: { usage: { inputTokens: 25, outputTokens, isEstimated: false } },
    });
  });

  it("is estimated from what came, rather too high, where the gateway stops first", async () => {
    const last = new AbortController();
    const behaviour = answer({ text: pieces, cutAfter: 2, ending: "hang" });
    const error = await stopped("openai-compatible", chat, behaviour, {
      onDisconnect: "grace",
      lastSignal: last.signal,
      onStop: () => last.abort(),
    });
    const plainTokens = Math.ceil(chat.last().body.length / 4);
    const isHigher = expect.toSatisfy((tokens: number) => tokens > plainTokens) as number;
    expect(error).toMatchObject({
      reportedCost: { usage: { inputTokens: isHigher, isEstimated: true } },
    });
  });

  it("is not read on before any content: it costs its input", async () => {
    const reading = { onDisconnect: "grace", lastSignal: neverLast } as const;
    const error = await stopped("openai-compatible", chat, hang, reading);
    expect(error).toMatchObject({ reportedCost: { usage: { outputTokens: 0 } } });
  });
});
