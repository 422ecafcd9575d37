/** The two doors of a text generation: bytes in a wire style, and the contract's own messages. */
import { create } from "@bufbuild/protobuf";
import {
  type GenerateEvent,
  type Generation,
  type Reply,
} from "../../gen/uas/inference/v1/generate_pb.ts";
import {
  type EmbedRequest,
  type EmbedResponse,
  EmbedResponseSchema,
  type ExchangeRequest,
  type ExchangeResponse,
  ExchangeResponseSchema,
  type GenerateResponse,
  GenerateResponseSchema,
  type StreamGenerateResponse,
} from "../../gen/uas/inference/v1/inference_service_pb.ts";
import { asksForBackground } from "./background/request.ts";
import type { Background } from "./background/submit.ts";
import type { Door } from "./door.ts";
import { EmbedDoor } from "./embed-door.ts";
import { type Parts, RunParts } from "./run-parts.ts";
import { Run } from "./run.ts";
import type { ExchangeContext, ExchangeOptions, RunStart } from "./run-options.ts";
import { TypedDoor } from "./typed-door.ts";
import { WireDoor } from "./wire-door.ts";
import { newId } from "../uuid.ts";

/** Runs calls. A failure before the first message is thrown. */
export interface Exchange {
  /** Bytes in and bytes out. A failure after the head ends the body as its dialect does. */
  wire(request: ExchangeRequest, context: ExchangeContext): AsyncIterableIterator<ExchangeResponse>;
  /** Through a door of another room: with its own messages. */
  through<Message>(
    door: Door<Buffer>,
    parts: Parts<Buffer, Message>,
    start: RunStart,
  ): AsyncIterableIterator<Message>;
  /** Embeddings, bytes in and bytes out. */
  embed(request: EmbedRequest, context: ExchangeContext): Promise<EmbedResponse>;
  /** A whole reply. */
  generate(generation: Generation, context: ExchangeContext): Promise<GenerateResponse>;
  /** A reply while it is produced. A failure in its middle is thrown. */
  streamGenerate(
    generation: Generation,
    context: ExchangeContext,
  ): AsyncIterableIterator<StreamGenerateResponse>;
}

/** @param background answers what nobody waits for */
export function createExchange(options: ExchangeOptions, background: Background): Exchange {
  const { calls } = options;
  return {
    wire(request, context) {
      if (asksForBackground(request)) return background(request, context);
      const callId = newId();
      const { accountId } = context.caller;
      const door = new WireDoor({ request, callId, accountId, state: options.state });
      const run = new Run(options, door, { context, callId });
      return new RunParts({ run, calls, parts: wireParts });
    },

    through: (door, parts, start) =>
      new RunParts({ run: new Run(options, door, start), calls, parts }),

    async embed(request, context) {
      const run = new Run(options, new EmbedDoor(request), { context, callId: newId() });
      const response = create(EmbedResponseSchema);
      for await (const { part } of new RunParts({ run, calls, parts: wireParts })) {
        if (part.case === "head") response.head = part.value;
        else if (part.case === "chunk") response.body = part.value;
      }
      return response;
    },

    async generate(generation, context) {
      const door = new TypedDoor({ ...generation, stream: false });
      const run = new Run(options, door, { context, callId: newId() });
      for await (const _ of new RunParts({ run, calls, parts: wholeParts }));
      return create(GenerateResponseSchema, {
        reply: door.reply as Reply,
        dropped: [...run.dropped],
      });
    },

    streamGenerate(generation, context) {
      const door = new TypedDoor({ ...generation, stream: true });
      const run = new Run(options, door, { context, callId: newId() });
      return new RunParts({ run, calls, parts: typedParts() });
    },
  };
}

const wireParts: Parts<Buffer, ExchangeResponse> = {
  head: (run) => create(ExchangeResponseSchema, { part: { case: "head", value: run.head() } }),
  // As `create` would make it, without going through the schema for each chunk.
  of: (value) => [{ $typeName: ExchangeResponseSchema.typeName, part: { case: "chunk", value } }],
};

/** A whole reply goes out with the response, and not in messages. */
const wholeParts: Parts<GenerateEvent[], undefined> = {
  head: (run) => void run.head(),
  of: () => [undefined],
};

function typedParts(): Parts<GenerateEvent[], StreamGenerateResponse> {
  let dropped: string[] = [];
  return {
    head(run) {
      run.head();
      dropped = [...run.dropped];
      return undefined;
    },
    of(events) {
      const [first, ...more] = events.map((event) => message(event));
      if (first === undefined) throw new Error("nothing to send");
      first.dropped = dropped;
      dropped = [];
      return [first, ...more];
    },
  };
}

function message(event: GenerateEvent): StreamGenerateResponse {
  return { $typeName: "uas.inference.v1.StreamGenerateResponse", event, dropped: [] };
}
