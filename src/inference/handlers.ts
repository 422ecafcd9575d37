/**
 * The handlers of the contract's methods that call models: what both edges call. They push their replies into a sink:
 * a socket where REST calls them, the messages of an RPC otherwise.
 */
import { create } from "@bufbuild/protobuf";
import {
  type GenerateEvent,
  type Generation,
  type Reply,
} from "../../gen/uas/inference/v1/generate_pb.ts";
import {
  type EmbedRequest,
  type ExchangeRequest,
  type GenerateResponse,
  GenerateResponseSchema,
} from "../../gen/uas/inference/v1/inference_service_pb.ts";
import { newId } from "../core/uuid.ts";
import { asksForBackground } from "./background/request.ts";
import type { Background } from "./background/submit.ts";
import { EmbedAdapter } from "./embed-adapter.ts";
import type { CallAdapter, Chunk } from "./pipeline/adapter.ts";
import type { CallContext, PipelineDeps } from "./pipeline/context.ts";
import { runCall } from "./pipeline/pipeline.ts";
import { type SentReply, type Sink, withinSettleWait } from "../core/sink.ts";
import type { CallState } from "./state/responses-memory.ts";
import { TypedAdapter } from "./typed-adapter.ts";
import { WireAdapter } from "./wire-adapter.ts";

/** Handles calls. A failure that the sink was not told of is thrown as a GatewayError. */
export interface InferenceHandlers {
  /** A text generation in a wire style. */
  exchange(request: ExchangeRequest, context: CallContext, sink: Sink<Buffer>): Promise<SentReply>;
  /** Embeddings, in OpenAI's form. */
  embed(request: EmbedRequest, context: CallContext, sink: Sink<Buffer>): Promise<SentReply>;
  /** A complete reply in the contract's own messages. */
  generate(generation: Generation, context: CallContext): Promise<GenerateResponse>;
  /** A streamed reply in the contract's own messages. */
  streamGenerate(
    generation: Generation,
    context: CallContext,
    sink: Sink<GenerateEvent[]>,
  ): Promise<SentReply>;
  /** A call of another room, by an adapter of its own. */
  runAdapter<Out extends Chunk>(
    adapter: CallAdapter<Out>,
    context: CallContext,
    sink: Sink<Out>,
  ): Promise<SentReply>;
}

/** What {@link createHandlers} needs. */
export interface HandlerOptions extends PipelineDeps {
  /** What is kept between calls. */
  readonly state: CallState;
}

/** @param background answers requests for responses that nobody waits for */
export function createHandlers(deps: HandlerOptions, background: Background): InferenceHandlers {
  const { state } = deps;
  return {
    exchange(request, context, sink) {
      if (asksForBackground(request)) return background(request, context, sink);
      const callId = newId();
      const { accountId } = context.caller;
      const adapter = new WireAdapter({ request, callId, accountId, state });
      return runCall(adapter, sink, { callId, context, deps });
    },

    embed: (request, context, sink) =>
      runCall(new EmbedAdapter(request), sink, { callId: newId(), context, deps }),

    async generate(generation, context) {
      let reply: Reply | undefined;
      const adapter = new TypedAdapter({ ...generation, stream: false }, (whole) => {
        reply = whole;
      });
      const { call, settled } = await runCall(adapter, discardSink, {
        callId: newId(),
        context,
        deps,
      });
      await withinSettleWait(settled);
      return create(GenerateResponseSchema, {
        ...(reply && { reply }),
        dropped: [...call.dropped],
      });
    },

    streamGenerate(generation, context, sink) {
      const adapter = new TypedAdapter({ ...generation, stream: true });
      return runCall(adapter, sink, { callId: newId(), context, deps });
    },

    runAdapter: (adapter, context, sink) =>
      runCall(adapter, sink, { callId: newId(), context, deps }),
  };
}

/** A complete reply goes out with the response, not in pieces. */
const discardSink: Sink<GenerateEvent[]> = { whole() {}, head() {}, chunk: () => undefined };
