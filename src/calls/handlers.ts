/**
 * The handlers of the contract's methods that call models. Both edges call them. They push their
 * replies into a sink: a socket for REST, the messages of an RPC otherwise.
 */
import { create } from "@bufbuild/protobuf";
import {
  type GenerateEvent,
  type Generation,
  type Reply,
} from "../../gen/uas/inference/v1/generate_pb.ts";
import {
  type CompleteRequest,
  type EmbedRequest,
  type ExchangeRequest,
  type GenerateResponse,
  GenerateResponseSchema,
  type ModerateRequest,
  type RerankRequest as RerankMessage,
} from "../../gen/uas/inference/v1/inference_service_pb.ts";
import type { MediaHandler } from "./adapters/media/handler.ts";
import {
  BodyAdapter,
  type BodyMessage,
  type BodyRequest,
  CompletionRequest,
  EmbeddingsRequest,
  ModerationsRequest,
  RerankRequest,
} from "./adapters/operations.ts";
import type { CallAdapter, Chunk } from "./pipeline/adapter.ts";
import type { CallContext, PipelineDeps } from "./pipeline/context.ts";
import { runCall } from "./pipeline/pipeline.ts";
import { type SentReply, type Sink, withinSettleWait } from "../core/sink.ts";
import type { CallState } from "../responses/stored/responses-memory.ts";
import { TypedAdapter } from "./adapters/typed-adapter.ts";
import { WireAdapter } from "./adapters/wire-adapter.ts";

/** Handles calls. A failure for which the sink got no error event is thrown as a GatewayError. */
export interface InferenceHandlers {
  /** Generates text in a wire style. */
  exchange(request: ExchangeRequest, context: CallContext, sink: Sink<Buffer>): Promise<SentReply>;
  /** Creates embeddings, in OpenAI's form. */
  embed: HandleBody<EmbedRequest>;
  /** Orders documents by their relevance to a query. */
  rerank: HandleBody<RerankMessage>;
  /** Classifies texts by categories of harm, in OpenAI's form. */
  moderate: HandleBody<ModerateRequest>;
  /** Continues a text, in the form of OpenAI's legacy completions. */
  complete: HandleBody<CompleteRequest>;
  /** Generates a complete reply in the contract's own messages. */
  generate(generation: Generation, context: CallContext): Promise<GenerateResponse>;
  /** Generates a streamed reply in the contract's own messages. */
  streamGenerate(
    generation: Generation,
    context: CallContext,
    sink: Sink<GenerateEvent[]>,
  ): Promise<SentReply>;
  /** Serves a request for images or audio, in OpenAI's form. */
  exchangeMedia: MediaHandler;
  /** Runs a call of another room, by its own adapter. */
  runAdapter<Out extends Chunk>(
    adapter: CallAdapter<Out>,
    context: CallContext,
    sink: Sink<Out>,
  ): Promise<SentReply>;
}

/** Handles requests with one JSON body. */
export type HandleBody<Message> = (
  request: Message,
  context: CallContext,
  sink: Sink<Buffer>,
) => Promise<SentReply>;

/** Options of {@link createHandlers}. */
export interface HandlerOptions extends PipelineDeps {
  /** The state that outlives a call. */
  readonly state: CallState;
}

/** Responses that are generated in the background, as tasks. */
export interface BackgroundResponses {
  /** Whether a request needs the exchange; false for an invalid request, which is refused later. */
  readonly isRequested: (request: ExchangeRequest) => boolean;
  /** Accepts a request, and replies with the response in its current status. */
  readonly accept: (
    request: ExchangeRequest,
    context: CallContext,
    sink: Sink<Buffer>,
  ) => Promise<SentReply>;
}

/** The handlers of requests that may become tasks. */
export interface TaskHandlers {
  readonly background: BackgroundResponses;
  /** Serves requests for images. */
  readonly media: MediaHandler;
}

/** Creates the handlers. */
export function createHandlers(
  deps: HandlerOptions,
  { background, media }: TaskHandlers,
): InferenceHandlers {
  const { clock, state } = deps;
  const handleBody =
    <Message extends BodyMessage>(read: (message: Message) => BodyRequest): HandleBody<Message> =>
    (message, context, sink) =>
      runCall(new BodyAdapter(message, read), sink, { callId: clock.newId(), context, deps });
  return {
    exchange(request, context, sink) {
      if (!request.compact && background.isRequested(request)) {
        return background.accept(request, context, sink);
      }
      const callId = clock.newId();
      const { accountId } = context.caller;
      const adapter = new WireAdapter({ request, callId, accountId, state, clock });
      return runCall(adapter, sink, { callId, context, deps });
    },

    embed: handleBody((message) => new EmbeddingsRequest(message)),
    rerank: handleBody((message) => new RerankRequest(message)),
    moderate: handleBody((message) => new ModerationsRequest(message)),
    complete: handleBody((message) => new CompletionRequest(message)),

    exchangeMedia: media,

    async generate(generation, context) {
      let reply: Reply | undefined;
      const adapter = new TypedAdapter({ ...generation, stream: false }, clock, (whole) => {
        reply = whole;
      });
      const { call, settled } = await runCall(adapter, discardSink, {
        callId: clock.newId(),
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
      const adapter = new TypedAdapter({ ...generation, stream: true }, clock);
      return runCall(adapter, sink, { callId: clock.newId(), context, deps });
    },

    runAdapter: (adapter, context, sink) =>
      runCall(adapter, sink, { callId: clock.newId(), context, deps }),
  };
}

/** Ignores the reply: the adapter hands a complete reply to the response itself. */
const discardSink: Sink<GenerateEvent[]> = { whole() {}, head() {}, chunk: () => undefined };
