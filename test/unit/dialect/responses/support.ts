/**
 * Support of the tests of the responses codec: generated calls, replies as events, and a server
 * that answers with given bytes.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Dialect } from "../../../../gen/uas/http/v1/http_pb.ts";
import {
  type PartSchema,
  ReasoningSealSchema,
} from "../../../../gen/uas/inference/v1/conversation_pb.ts";
import {
  type GenerateEvent,
  GenerateEventSchema,
  type Generation,
  ReplyEndSchema,
  StopReason,
} from "../../../../gen/uas/inference/v1/generate_pb.ts";
import { UsageSchema } from "../../../../gen/uas/type/v1/usage_pb.ts";
import type { ReplyOptions, RequestTarget } from "../../../../src/dialect/codec.ts";
import { decodeResponsesRequest } from "../../../../src/dialect/responses/decode-request.ts";
import { encodeResponsesRequest } from "../../../../src/dialect/responses/encode-request.ts";
import { ResponsesStreamEncoder } from "../../../../src/dialect/responses/encode-stream.ts";

/** Reads a request body. */
export function decode(body: unknown): Generation {
  const bytes = typeof body === "string" ? body : JSON.stringify(body);
  return decodeResponsesRequest(Buffer.from(bytes), { platformAliases: false });
}

/** Writes a request for a vendor. */
export function encode(
  generation: Generation,
  sourceDialect: Dialect | undefined,
  target: Partial<RequestTarget> = {},
) {
  const encoded = encodeResponsesRequest(generation, {
    model: "vendor-model",
    stream: false,
    maxOutputTokens: 4096,
    sourceDialect,
    ...target,
  });
  const body = JSON.parse(encoded.body.toString()) as Record<string, unknown>;
  return { body, dropped: encoded.dropped };
}

/** Returns the options for writing a reply to `generation`. */
export function replyOptions(
  generation: Generation,
  onDropped: ReplyOptions["onDropped"] = () => {},
): ReplyOptions {
  return {
    model: "public-model",
    callId: "0123456789abcdef0123456789abcdef",
    created: 1_700_000_000,
    now: () => 1_700_000_009,
    inputTokens: 7,
    generation,
    onDropped,
  };
}

type EventInit = NonNullable<MessageInitShape<typeof GenerateEventSchema>["kind"]>;
type PartInit = MessageInitShape<typeof PartSchema>;
type DeltaInit = NonNullable<
  NonNullable<Extract<EventInit, { case: "partDelta" }>["value"]>["delta"]
>;

function event(kind: EventInit): GenerateEvent {
  return create(GenerateEventSchema, { kind });
}

/** A reply begins. */
export function start(): GenerateEvent {
  return event({
    case: "start",
    value: { id: "v-1", model: "vendor-model", created: 1_690_000_000n },
  });
}

/** A part begins. */
export function begin(index: number, part: PartInit): GenerateEvent {
  return event({ case: "partStart", value: { index, part } });
}

/** A part goes on. */
export function delta(index: number, value: DeltaInit): GenerateEvent {
  return event({ case: "partDelta", value: { index, delta: value } });
}

/** A part ends. */
export function finish(index: number): GenerateEvent {
  return event({ case: "partEnd", value: { index } });
}

/** A whole part. */
export function whole(index: number, part: PartInit, ...deltas: DeltaInit[]): GenerateEvent[] {
  return [begin(index, part), ...deltas.map((each) => delta(index, each)), finish(index)];
}

/** A reply ends. */
export function end(value: MessageInitShape<typeof ReplyEndSchema> = {}): GenerateEvent {
  const usage = create(UsageSchema, {
    inputTokens: 20,
    cachedInputTokens: 5,
    outputTokens: 9,
    reasoningTokens: 4,
  });
  const stopReason = StopReason.END;
  return event({
    case: "end",
    value: create(ReplyEndSchema, { stopReason, usage, ...value }),
  });
}

/** The text of a part in pieces. */
export function text(...pieces: string[]): DeltaInit[] {
  return pieces.map((value) => ({ case: "text", value }));
}

/** A seal of messages. */
export function messagesSeal(signature: string) {
  return create(ReasoningSealSchema, { dialect: Dialect.MESSAGES, signature });
}

/** The stream for the events. */
export function streamOf(events: readonly GenerateEvent[], options: ReplyOptions): string {
  const encoder = new ResponsesStreamEncoder(options);
  return events.map((each) => encoder.push(each)).join("");
}

/** The events of a stream, parsed; checks that the names agree and the numbers grow from 0. */
export function eventsOf(stream: string): Array<Record<string, unknown>> {
  return stream
    .split("\n\n")
    .slice(0, -1)
    .map((raw, i) => {
      const [name = "", data = ""] = raw.split("\n");
      const parsed = JSON.parse(data.replace(/^data: /, "")) as Record<string, unknown>;
      if (name !== `event: ${String(parsed["type"])}`) throw new Error(`${name} is not the type`);
      if (parsed["sequence_number"] !== i) throw new Error(`${name} is not number ${i}`);
      return parsed;
    });
}

/** A server that answers every request with the same bytes, and keeps what it was sent. */
export interface CannedServer extends AsyncDisposable {
  /** With `/v1`. */
  readonly url: string;
  readonly bodies: string[];
}

/** Starts one. */
export async function serve(body: string, type = "text/event-stream"): Promise<CannedServer> {
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    let sent = "";
    request.setEncoding("utf8");
    request.on("data", (piece: string) => (sent += piece));
    request.on("end", () => {
      bodies.push(sent);
      response.writeHead(200, { "content-type": type, connection: "close" });
      response.end(body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    bodies,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
