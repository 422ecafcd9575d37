/** Replies as messages of the RPC. */
import { create } from "@bufbuild/protobuf";
import {
  type ExchangeResponse,
  ExchangeResponseSchema,
} from "../../gen/uas/native/v1/native_service_pb.ts";
import type { Parts } from "../inference/run-parts.ts";

/** Status and headers of a reply. */
export interface NativeHead {
  readonly status: number;
  readonly headers: Record<string, string>;
}

/** The first message. */
export function headPart(value: NativeHead): ExchangeResponse {
  return create(ExchangeResponseSchema, { part: { case: "head", value } });
}

/** As `create` would make it, without going through the schema for each chunk. */
export function chunkPart(value: Uint8Array): ExchangeResponse {
  return { $typeName: ExchangeResponseSchema.typeName, part: { case: "chunk", value } };
}

/** Those of a call. */
export const callParts: Parts<Buffer, ExchangeResponse> = {
  head: (run) => headPart(run.head()),
  of: (value) => [chunkPart(value)],
};

/** A reply that is here. */
export async function* wholeReply(
  head: NativeHead,
  body: Uint8Array,
): AsyncGenerator<ExchangeResponse> {
  yield headPart(head);
  if (body.length > 0) yield chunkPart(body);
}
