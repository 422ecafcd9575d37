/**
 * The trace of a call: a server span, and a client span for each attempt at a vendor. It has ids,
 * figures and names, never the content of a request or a reply.
 */
import { CallEndingSchema } from "../../../gen/uas/billing/v1/call_pb.ts";
import type { VendorConfig } from "../../config/config.ts";
import type { CallFacts, RecordedTokens } from "../../billing/calls/call-record.ts";
import { nanosPerUsd } from "../../core/money.ts";
import { own, providerName, standard } from "../../observe/traces/names.ts";
import type { SpanAttributes, Traces, TraceSpan } from "../../observe/traces/traces.ts";
import type { OperationName } from "../../provider/vendor.ts";
import type { Destination } from "../../routing/attempt-plan.ts";
import type { CallAdapter, Chunk, ReadRequest } from "./adapter.ts";

/** Facts of a call at its start. */
interface TracedStart extends Pick<CallFacts, "id" | "requestId" | "accountId" | "keyId"> {
  /** The client's header. */
  readonly traceparent: string | undefined;
}

/** Begins the trace of a call; undefined without traces, or if it is not sampled. */
export function startTrace<Out extends Chunk>(
  traces: Traces | undefined,
  { method, route }: CallAdapter<Out>,
  { id, requestId, accountId, keyId, traceparent }: TracedStart,
): CallTrace | undefined {
  if (traces === undefined) return undefined;
  const span = traces.start(`${method} ${route}`, {
    role: "server",
    traceparent,
    attributes: {
      [standard.httpMethod]: method,
      [standard.httpRoute]: route,
      [own.requestId]: requestId,
      [own.callId]: id,
      [own.account]: accountId,
      [own.key]: keyId,
    },
  });
  return span && new CallTrace(span);
}

/** The spans of a running call. */
export class CallTrace {
  readonly #span: TraceSpan;
  readonly #startMs = performance.now();
  #attempt: TraceSpan | undefined;
  #attemptMs = 0;
  #waitMs = 0;

  constructor(span: TraceSpan) {
    this.#span = span;
  }

  get traceId(): string {
    return this.#span.traceId;
  }

  /** Marks the start of a wait for the ledger. */
  startWait(): void {
    this.#waitMs = performance.now();
  }

  /** Records the wait that has ended as an event. */
  endWait(name: string): void {
    this.#span.event(name, { [own.waitMs]: performance.now() - this.#waitMs });
  }

  /** Begins the span of an attempt. */
  attempting<Out extends Chunk>(
    { planned, route, credential }: Destination,
    { operation, text }: ReadRequest<Out>,
  ): void {
    const { vendor, model } = planned.route;
    const name = operationNames[operation ?? "generate"];
    const { host, port } = addressOf(route.owner.config);
    this.#attemptMs = performance.now();
    this.#attempt = this.#span.child(`${name} ${model}`, "client", {
      [standard.operation]: name,
      [standard.provider]: providerName(host, vendor),
      [standard.requestModel]: model,
      [standard.serverAddress]: host || undefined,
      [standard.serverPort]: port,
      [standard.requestMaxTokens]: text.maxOutputTokens,
      [standard.requestStream]: text.stream || undefined,
      [standard.requestChoices]: text.choices > 1 ? text.choices : undefined,
      [own.vendor]: vendor,
      [own.credential]: credential.credential || undefined,
    });
  }

  /** Ends the span of an attempt after which another may follow. */
  attemptFailed(failure: string): void {
    this.#attempt?.set({ [standard.errorType]: failure });
    this.#attempt?.end(failure);
    this.#attempt = undefined;
  }

  /** Ends the span of the last attempt, whose reply has ended. */
  attemptEnded(call: CallFacts): void {
    const attempt = this.#attempt;
    if (attempt === undefined) return;
    this.#attempt = undefined;
    const firstChunkMs = this.#startMs + call.firstByteMs - this.#attemptMs;
    const error = call.errorCode || undefined;
    attempt.set({
      ...usageAttributes(call.usage),
      [standard.responseFirstChunk]:
        call.stream && call.firstByteMs > 0 ? firstChunkMs / 1_000 : undefined,
      [standard.errorType]: error,
      [own.upstreamRequestId]: call.upstreamRequestId || undefined,
    });
    attempt.end(error);
  }

  /** Ends the call's span, after its settlement. */
  end(call: CallFacts): void {
    this.attemptEnded(call);
    const { status, model, costNanos, vendorCostNanos, errorCode, heldNanos } = call;
    this.#span.set({
      [standard.httpStatus]: status || undefined,
      [standard.errorType]: errorCode || undefined,
      [own.model]: heldNanos === undefined ? undefined : model,
      [own.ending]: CallEndingSchema.value[call.ending]?.localName.toLowerCase(),
      [own.costAmount]: Number(costNanos) / nanos,
      [own.costCurrency]: "USD",
      [own.vendorCostAmount]:
        vendorCostNanos === undefined ? undefined : Number(vendorCostNanos) / nanos,
    });
    this.#span.end(status >= 500 ? errorCode : undefined);
  }
}

const nanos = Number(nanosPerUsd);

/** `gen_ai.operation.name` by operation. Those after `complete` are not standardised. */
const operationNames: Readonly<Record<OperationName | "generate", string>> = {
  generate: "chat",
  embed: "embeddings",
  complete: "text_completion",
  rerank: "rerank",
  moderate: "moderation",
  countTokens: "count_tokens",
  generateImages: "image_generation",
  editImages: "image_edit",
  varyImages: "image_variation",
  speak: "text_to_speech",
  transcribe: "transcription",
  translate: "translation",
};

function usageAttributes(usage: RecordedTokens | undefined): SpanAttributes {
  if (usage === undefined) return {};
  return {
    [standard.inputTokens]: usage.inputTokens,
    [standard.outputTokens]: usage.outputTokens,
    [standard.cacheReadTokens]: usage.cachedInputTokens || undefined,
    [standard.cacheCreationTokens]: usage.cacheWriteTokens || undefined,
    [standard.reasoningTokens]: usage.reasoningTokens || undefined,
  };
}

interface Address {
  /** Empty for a vendor without an address. */
  readonly host: string;
  readonly port?: number;
}

/** Parsed once for each vendor: it takes 2 µs. */
const addresses = new WeakMap<VendorConfig, Address>();

function addressOf(vendor: VendorConfig): Address {
  let address = addresses.get(vendor);
  if (address === undefined) addresses.set(vendor, (address = parseAddress(vendor.baseUrl)));
  return address;
}

function parseAddress(baseUrl: string): Address {
  const url = URL.parse(baseUrl);
  if (url === null) return { host: "" };
  return { host: url.hostname, port: Number(url.port) || (url.protocol === "https:" ? 443 : 80) };
}
