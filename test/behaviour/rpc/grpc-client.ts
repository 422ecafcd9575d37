/** `@grpc/grpc-js` on the plain proto files: a client that shares no code with the server. */
import { type DescMessage, fromBinary, type MessageShape } from "@bufbuild/protobuf";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import { AnySchema, anyUnpack } from "@bufbuild/protobuf/wkt";
import * as grpc from "@grpc/grpc-js";
import { loadSync, type MethodDefinition } from "@grpc/proto-loader";
import { globSync } from "node:fs";
import { join } from "node:path";
import { type ErrorDetail, ErrorDetailSchema } from "../../../gen/uas/error/v1/error_pb.ts";
import { protoDir } from "./harness.ts";

/** A message as proto-loader makes it. */
export type Message = Readonly<Record<string, unknown>>;

const includeDirs = [
  protoDir,
  join(import.meta.dirname, "../../../node_modules/grpc-health-check/proto"),
];

const definition = loadSync(
  [...globSync("uas/*/v1/*_service.proto", { cwd: protoDir }), "health/v1/health.proto"],
  { includeDirs, longs: String, enums: String, oneofs: true },
);

/** A connected client. Close it. */
export class GrpcClient {
  readonly #client: grpc.Client;

  constructor(url: string) {
    this.#client = new grpc.Client(new URL(url).host, grpc.credentials.createInsecure());
  }

  /** One message for one. @throws grpc.ServiceError */
  unary(path: string, input: Message, options: CallOptions = {}): Promise<Answer> {
    const { requestSerialize, responseDeserialize } = methodOf(path);
    return new Promise((resolve, reject) => {
      let header = new grpc.Metadata();
      const call = this.#client.makeUnaryRequest(
        path,
        requestSerialize,
        responseDeserialize,
        input,
        metadataOf(options),
        callOptions(options),
        (error, message) => {
          if (error) reject(error);
          else resolve({ header, message: message as Message });
        },
      );
      call.on("metadata", (metadata) => (header = metadata));
    });
  }

  /** Many messages for one. */
  stream(
    path: string,
    input: Message,
    options: CallOptions = {},
  ): grpc.ClientReadableStream<Message> {
    const { requestSerialize, responseDeserialize } = methodOf(path);
    return this.#client.makeServerStreamRequest(
      path,
      requestSerialize,
      responseDeserialize as (bytes: Buffer) => Message,
      input,
      metadataOf(options),
      callOptions(options),
    );
  }

  close(): void {
    this.#client.close();
  }
}

/** Options of a call besides its message. */
export interface CallOptions {
  readonly metadata?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
}

/** Result of a unary call. */
export interface Answer {
  readonly header: grpc.Metadata;
  readonly message: Message;
}

function metadataOf({ metadata = {} }: CallOptions): grpc.Metadata {
  const sent = new grpc.Metadata();
  for (const [name, value] of Object.entries(metadata)) sent.set(name, value);
  return sent;
}

function callOptions({ timeoutMs }: CallOptions): grpc.CallOptions {
  return timeoutMs === undefined ? {} : { deadline: Date.now() + timeoutMs };
}

/** @param path for example `/uas.key.v1.KeyService/GetKey` */
function methodOf(path: string): MethodDefinition<object, object> {
  const [, service = "", name = ""] = path.split("/");
  const methods = definition[service] as Readonly<Record<string, MethodDefinition<object, object>>>;
  const method = methods?.[name];
  if (method === undefined) throw new Error(`no ${path}`);
  return method;
}

/** The details of our own that an error carries. */
export function detailsOf(error: grpc.ServiceError): ErrorDetail[] {
  return detailsOfType(error, ErrorDetailSchema);
}

/** The details of a type that an error carries: `google.rpc.Status` in a trailer, read by hand. */
export function detailsOfType<Desc extends DescMessage>(
  error: grpc.ServiceError,
  schema: Desc,
): MessageShape<Desc>[] {
  const [status] = error.metadata.get("grpc-status-details-bin");
  if (!Buffer.isBuffer(status)) return [];
  const reader = new BinaryReader(status);
  const details: MessageShape<Desc>[] = [];
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag();
    if (field !== 3) {
      reader.skip(type, field);
      continue;
    }
    const detail = anyUnpack(fromBinary(AnySchema, reader.bytes()), schema);
    if (detail) details.push(detail);
  }
  return details;
}

/** The error that a call is refused with. Throws if it is not. */
export async function refusalOf(call: Promise<unknown>): Promise<grpc.ServiceError> {
  const error = await call.then(
    () => undefined,
    (cause: unknown) => cause as grpc.ServiceError,
  );
  if (error === undefined) throw new Error("it was not refused");
  return error;
}
