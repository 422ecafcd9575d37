/** Passes streams and bodies through a dialect's relay, for its tests. */
import * as fc from "fast-check";
import type { RelayOptions, StreamRelay, TextDialect } from "../../../src/dialect/dialect.ts";
import { GatewayError } from "../../../src/core/errors.ts";

/** Passing of a stream. */
export interface Passing {
  /** The public model name. Default: the vendor's stays. */
  readonly model?: string;
  /** Where it is cut, as byte offsets; wrapped to its length. Default: nowhere. */
  readonly cuts?: readonly number[];
}

export function optionsOf({ model }: Passing): RelayOptions {
  return { publicModel: model, hideUsage: false, choices: 1 };
}

/** Passes a stream in pieces. */
export function relayed(
  dialect: TextDialect,
  stream: string,
  passing: Passing = {},
): { text: string; relay: StreamRelay } {
  const relay = dialect.relayStream(optionsOf(passing));
  const bytes = Buffer.from(stream);
  const cuts = [...(passing.cuts ?? []), bytes.length].map((cut) => cut % (bytes.length + 1));
  const out: Buffer[] = [];
  let start = 0;
  for (const cut of cuts.toSorted((a, b) => a - b)) {
    // A fresh copy for each piece, as sockets deliver them.
    out.push(relay.push([Buffer.from(bytes.subarray(start, cut))]));
    start = cut;
  }
  out.push(relay.push([bytes.subarray(start)]));
  return { text: Buffer.concat(out).toString(), relay };
}

/** One event as both styles write it. */
export function event(data: { readonly type: string } & Record<string, unknown>): string {
  return `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** Members that no gateway knows. */
export const unknownMembers = fc.dictionary(
  fc.string({ unit: "grapheme" }).map((name) => `x_${name}`),
  fc.jsonValue({ maxDepth: 3 }),
  { maxKeys: 3 },
);

/** Where a stream is cut. */
export const cuts = fc.array(fc.nat(), { maxLength: 12 });

/** Bytes between the events of any style. */
export const interludes = fc.constantFrom(
  ": comment\n\n",
  "event: x.unheard.of\ndata: {}\n\n",
  'event: x.unheard.of\ndata: {"type":"x.unheard.of","é":[1e400,"€"]}\n\n',
  "id: 7\nretry: 5\nevent: nothing\n\n",
  'event: ping\ndata: {"type": "ping"}\n\n',
  "data: [DONE]\n\n",
  "data: no JSON\n\n",
  'event: x\ndata: {"type":\ndata:"x",\ndata: "model":"vendor-model"}\n\n',
);

/** Returns the error for a refused request. */
export function refusal(dialect: TextDialect, body: unknown): GatewayError {
  try {
    read(dialect, body);
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error("was accepted");
}

/** Reads a request body: JSON as text, or what becomes JSON. */
export function read(dialect: TextDialect, body: unknown, options = {}) {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const plain = { alwaysStream: false, platformAliases: false };
  return dialect.readRequest(Buffer.from(text), { ...plain, ...options });
}

/** Returns the body for a vendor. */
export function sentBody(request: ReturnType<typeof read>, model: string): string {
  return Buffer.concat(request.forVendor({ model })).toString();
}
