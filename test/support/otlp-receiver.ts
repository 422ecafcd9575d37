/** A collector of traces: OTLP over HTTP, whose protobuf it decodes by field numbers. */
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { gunzipSync } from "node:zlib";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";

/** A span as it was received. Ids are hexadecimal. */
export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for the first span of a trace. */
  readonly parentId: string;
  readonly name: string;
  /** 2 server, 3 client, 4 producer, 5 consumer. */
  readonly kind: number;
  readonly startNanos: bigint;
  readonly endNanos: bigint;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly events: readonly { readonly name: string; readonly attributes: object }[];
  /** The trace and span of each link. */
  readonly links: readonly (readonly [traceId: string, spanId: string])[];
  /** 2 if it failed. */
  readonly status: number;
  /** Attributes of its process. */
  readonly resource: Readonly<Record<string, unknown>>;
}

/** The collector. */
export type OtlpReceiver = Awaited<ReturnType<typeof startOtlpReceiver>>;

/** Starts a collector. @param status its answer; 0 never answers */
export async function startOtlpReceiver(status = 200) {
  const spans: ReceivedSpan[] = [];
  const requests: { readonly path: string; readonly headers: IncomingHttpHeaders }[] = [];
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      requests.push({ path: request.url ?? "", headers: request.headers });
      if (status === 0) return;
      const body = Buffer.concat(pieces);
      const isZipped = request.headers["content-encoding"] === "gzip";
      if (status === 200) spans.push(...readExport(isZipped ? gunzipSync(body) : body));
      response.writeHead(status, { "content-type": "application/x-protobuf" }).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans: spans as readonly ReceivedSpan[],
    requests,
    async close(): Promise<void> {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The fields of a message by number: integers, or bytes. */
type Fields = ReadonlyMap<number, readonly (bigint | Uint8Array)[]>;

function fieldsOf(bytes: Uint8Array): Fields {
  const reader = new BinaryReader(bytes);
  const fields = new Map<number, (bigint | Uint8Array)[]>();
  while (reader.pos < reader.len) {
    const [number, type] = reader.tag();
    const values = fields.get(number) ?? [];
    fields.set(number, values);
    if (type === WireType.Varint) values.push(BigInt(reader.uint64()));
    else if (type === WireType.Bit64) values.push(BigInt(reader.fixed64()));
    else if (type === WireType.LengthDelimited) values.push(reader.bytes());
    else reader.skip(type, number);
  }
  return fields;
}

const bytesAt = (fields: Fields, number: number): Uint8Array[] =>
  (fields.get(number) ?? []).filter((each) => each instanceof Uint8Array);
const numberAt = (fields: Fields, number: number): bigint =>
  (fields.get(number)?.[0] as bigint | undefined) ?? 0n;
const textAt = (fields: Fields, number: number): string =>
  Buffer.from(bytesAt(fields, number)[0] ?? []).toString();
const hexAt = (fields: Fields, number: number): string =>
  Buffer.from(bytesAt(fields, number)[0] ?? []).toString("hex");

function readExport(body: Uint8Array): ReceivedSpan[] {
  return bytesAt(fieldsOf(body), 1).flatMap((each) => {
    const resourceSpans = fieldsOf(each);
    const [resource = new Uint8Array()] = bytesAt(resourceSpans, 1);
    const process = attributesOf(fieldsOf(resource), 1);
    return bytesAt(resourceSpans, 2)
      .flatMap((scope) => bytesAt(fieldsOf(scope), 2))
      .map((span) => readSpan(fieldsOf(span), process));
  });
}

function readSpan(span: Fields, resource: ReceivedSpan["resource"]): ReceivedSpan {
  const [status = new Uint8Array()] = bytesAt(span, 15);
  return {
    traceId: hexAt(span, 1),
    spanId: hexAt(span, 2),
    parentId: hexAt(span, 4),
    name: textAt(span, 5),
    kind: Number(numberAt(span, 6)),
    startNanos: numberAt(span, 7),
    endNanos: numberAt(span, 8),
    attributes: attributesOf(span, 9),
    events: bytesAt(span, 11)
      .map(fieldsOf)
      .map((event) => ({ name: textAt(event, 2), attributes: attributesOf(event, 3) })),
    links: bytesAt(span, 13)
      .map(fieldsOf)
      .map((link) => [hexAt(link, 1), hexAt(link, 2)] as const),
    status: Number(numberAt(fieldsOf(status), 3)),
    resource,
  };
}

function attributesOf(fields: Fields, number: number): Record<string, unknown> {
  const pairs = bytesAt(fields, number).map(fieldsOf);
  return Object.fromEntries(
    pairs.map((pair) => [textAt(pair, 1), valueOf(fieldsOf(bytesAt(pair, 2)[0] ?? Buffer.of()))]),
  );
}

/** The value of an `AnyValue`. */
function valueOf(value: Fields): unknown {
  if (value.has(1)) return textAt(value, 1);
  if (value.has(2)) return numberAt(value, 2) === 1n;
  if (value.has(3)) return Number(numberAt(value, 3));
  return value.has(4) ? doubleOf(numberAt(value, 4)) : undefined;
}

function doubleOf(bits: bigint): number {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(bits);
  return bytes.readDoubleLE();
}
