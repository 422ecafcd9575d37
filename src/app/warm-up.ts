/**
 * Runs the path of a call against a vendor within this process until V8 has compiled it. The first 24,000 requests
 * of a cold gateway cost up to three times as much, mostly in compiler threads. The warm-up is not charged,
 * recorded, logged or counted, and contacts no configured vendor.
 */
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type Logger, pino } from "pino";
import { Pool } from "undici";
import { InferenceService } from "../../gen/uas/inference/v1/inference_service_pb.ts";
import { ModelType } from "../../gen/uas/inference/v1/model_pb.ts";
import type { Ledger } from "../billing/ledger/ledger.ts";
import type { ModelConfig, VendorConfig } from "../config/config.ts";
import { directHandlers } from "./edges.ts";
import { createFacade } from "../facade/facade.ts";
import { createCatalogue } from "../inference/catalogue.ts";
import { createHandlers, type HandlerOptions } from "../inference/handlers.ts";
import { DetachedReplies } from "../inference/pipeline/disconnect.ts";
import { MonitoredStreams } from "../inference/pipeline/hold-monitor.ts";
import { RunningCalls } from "../inference/running-calls.ts";
import { Targets } from "../inference/routing/targets.ts";
import { createUpstream } from "../inference/routing/upstream.ts";
import { systemClock } from "../core/clock.ts";
import { createMetrics } from "../core/metrics.ts";
import { UnfinishedBodies } from "../core/unfinished-bodies.ts";
import { createDirectTransport } from "../rpc/direct-transport.ts";
import { vendorKinds } from "../vendor/index.ts";

/** The parts of the gateway that the warm-up uses. */
export interface WarmUpOptions
  extends Pick<HandlerOptions, "pricing" | "state" | "counter" | "freeCounter"> {
  readonly models: Iterable<ModelConfig>;
  /** Ends it early. */
  readonly signal: AbortSignal;
  /** Time limit in milliseconds. Default 1,500. */
  readonly limitMs?: number;
}

/** Number of calls. From here on, the cost of a call is within a tenth of its final value. */
const callsWanted = 4_000;

/** Concurrent calls: enough to keep the event loop busy. */
const callsAtOnce = 16;

/** One call in this many is a stream. */
const streamEach = 8;

/** Options of a server's warm-up. */
export type WarmUpParts = Omit<WarmUpOptions, "signal"> & { readonly log: Logger };

/** The warm-up of a server. It starts when the server listens; only `/readyz` waits for it. */
export class WarmUp {
  readonly #options: WarmUpParts;
  readonly #stop = new AbortController();
  #isDone: boolean;
  #running: Promise<void> | undefined;

  /** @param isWanted whether to warm up at all */
  constructor(options: WarmUpParts, isWanted: boolean) {
    this.#options = options;
    this.#isDone = !isWanted;
  }

  /** Whether it has ended or is disabled. */
  get isDone(): boolean {
    return this.#isDone;
  }

  start(): void {
    if (!this.#isDone) this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { log } = this.#options;
    const startMs = performance.now();
    try {
      const calls = await warmUp({ ...this.#options, signal: this.#stop.signal });
      log.info({ calls, durationMs: Math.round(performance.now() - startMs) }, "warmed up");
    } catch (error) {
      log.warn({ err: error }, "the warm-up failed: the first calls are slower");
    }
    this.#isDone = true;
  }
}

/** Warms up. Resolves to the number of calls: 0 where no text model is configured. */
export async function warmUp(options: WarmUpOptions): Promise<number> {
  const { limitMs = 1_500, signal } = options;
  const model = [...options.models].find(({ type }) => type === ModelType.TEXT);
  if (model === undefined) return 0;
  const endMs = performance.now() + limitMs;
  const vendor = await listen(answer);
  const gateway = await openGateway(options, model, addressOf(vendor));
  const client = new Pool(gateway.url, { connections: callsAtOnce, pipelining: 1 });
  let made = 0;
  const call = async (): Promise<void> => {
    while (made < callsWanted && performance.now() < endMs && !signal.aborted) {
      const stream = made++ % streamEach === 0;
      const reply = await client.request({
        method: "POST",
        path: "/v1/chat/completions",
        headers: { "content-type": "application/json", authorization: `Bearer ${keyText}` },
        body: JSON.stringify({ model: model.key, stream, messages }),
      });
      await reply.body.dump();
    }
  };
  try {
    await Promise.all(Array.from({ length: callsAtOnce }, call));
  } finally {
    await client.destroy();
    await gateway.close();
    vendor.closeAllConnections();
    await new Promise((resolve) => vendor.close(resolve));
  }
  return made;
}

/** The only key of the warm-up gateway, whose port is not published. */
const keyText = `uas_${"0".repeat(32)}`;

const messages = [
  { role: "system", content: "You are a helpful assistant. ".repeat(20) },
  { role: "user", content: "What does a gateway do before its first call? ".repeat(20) },
];

interface OpenGateway {
  readonly url: string;
  close(): Promise<void>;
}

/** Creates a gateway of the same parts, without ledger, log, metrics or callers. */
async function openGateway(
  { pricing, state, counter, freeCounter }: WarmUpOptions,
  model: ModelConfig,
  vendorUrl: string,
): Promise<OpenGateway> {
  const log = pino({ level: "silent" });
  const metrics = createMetrics();
  const config = vendorConfig(vendorUrl);
  const vendor = vendorKinds["openai-compatible"]?.create(config);
  if (vendor === undefined) throw new TypeError("no kind openai-compatible");
  const route = { vendor: config.name, model: model.key };
  const models = new Map([[model.key, { ...model, routes: [route] }]]);
  const vendors = new Map([[config.name, { config, clients: [vendor] as const }]]);
  const notServed = () => Promise.reject(new TypeError("the warm-up runs no tasks"));
  const handlers = createHandlers(
    {
      clock: systemClock,
      ...{ pricing, state, counter, freeCounter, log, metrics, ledger: noBooks },
      catalogue: createCatalogue(models),
      upstream: createUpstream({ targets: new Targets({ vendors, metrics, log }), metrics, log }),
      calls: new RunningCalls(),
      limiter: { admit: notServed, isFar: () => false, end() {} },
      limitDefaults: {},
      admission: { admit: notServed, onEnd() {} },
      streams: new MonitoredStreams(),
      unlimitedRoutes: { has: () => false, add() {}, kept() {} },
      detached: new DetachedReplies(),
    },
    { background: notServed, media: notServed },
  );
  const notNative = () => Promise.reject(new TypeError("nothing is served in a vendor's form"));
  const { wire } = directHandlers(handlers, { exchange: notNative, followLink: notNative });
  const caller = { kind: "key", accountId: "", keyId: "", models: undefined } as const;
  const facade = await createFacade({
    services: [InferenceService],
    transport: createDirectTransport([], []),
    direct: { wire, native: notNative, followLink: notNative },
    authenticate: () => Promise.resolve(caller),
    isOpen: () => true,
    requireCapacity: () => {},
    stopping: new AbortController().signal,
    whyNotReady: () => Promise.resolve(undefined),
    findFile: () => Promise.resolve(undefined),
    bodies: new UnfinishedBodies(),
    ...{ metrics, log, natives: [], trustProxy: [] },
  });
  const url = await facade.listen(ownPort);
  return {
    url,
    async close() {
      await facade.close();
      await vendor.close();
    },
  };
}

/** A ledger that admits everything and records nothing. */
const noBooks: Ledger = {
  hold: () => Promise.resolve({ admitted: true }),
  extend: ({ amountNanos }) => Promise.resolve({ heldNanos: amountNanos }),
  settle: () => Promise.resolve(),
  record() {},
};

function vendorConfig(baseUrl: string): VendorConfig {
  const timeouts = { connectMs: 5_000, firstByteMs: 5_000, idleMs: 5_000 };
  return {
    name: "warm-up",
    kind: "openai-compatible",
    baseUrl,
    apiKey: undefined,
    dialects: undefined,
    timeouts,
    maxInFlight: undefined,
    pollsPerSecond: undefined,
    onDisconnect: "abort",
    nativePrefix: undefined,
    runBaseUrl: undefined,
  };
}

const usage = { prompt_tokens: 200, completion_tokens: 20, total_tokens: 220 };
const head = { id: "chatcmpl-warm-up", created: 1, model: "warm-up" };

const wholeBody = JSON.stringify({
  ...{ ...head, object: "chat.completion", usage },
  choices: [
    { index: 0, message: { role: "assistant", content: "It warms up." }, finish_reason: "stop" },
  ],
});

const streamBody = [
  ...["", ..."It warms up until all is compiled .".split(" ")].map((content) => ({
    choices: [{ index: 0, delta: { content }, finish_reason: null }],
  })),
  { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
  { choices: [], usage },
]
  .map(
    (chunk) =>
      `data: ${JSON.stringify({ ...head, object: "chat.completion.chunk", ...chunk })}\n\n`,
  )
  .join("");

/** The vendor: replies at once. */
const answer: RequestListener = (request, response) => {
  const pieces: Buffer[] = [];
  request.on("data", (piece: Buffer) => void pieces.push(piece));
  request.on("end", () => {
    const isStream = Buffer.concat(pieces).includes('"stream":true');
    const type = isStream ? "text/event-stream" : "application/json";
    response.writeHead(200, { "content-type": type });
    response.end(isStream ? `${streamBody}data: [DONE]\n\n` : wholeBody);
  });
};

/**
 * A free port of this process alone. Workers of one supervisor would otherwise share it and receive each other's
 * calls.
 */
const ownPort = { host: "127.0.0.1", port: 0, exclusive: true };

async function listen(listener: RequestListener): Promise<Server> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(ownPort, resolve));
  return server;
}

function addressOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
}
