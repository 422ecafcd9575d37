/** Keeps replies in the contract's own messages for repeated requests, as JSON. */
import { create, fromJsonString, toBinary, toJsonString } from "@bufbuild/protobuf";
import {
  type GenerateEvent,
  GenerateEventSchema,
  type Generation,
  GenerationSchema,
  type Reply,
  ReplySchema,
} from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { Repetition } from "../pipeline/adapter.ts";

/** The repetition of a streamed generation: one event in each line. */
export function streamRepetition(generation: Generation): Repetition<GenerateEvent[]> {
  return {
    identity: [toBinary(GenerationSchema, generation)],
    toBytes: (events) =>
      Buffer.from(events.map((each) => `${toJsonString(GenerateEventSchema, each)}\n`).join("")),
    fromBytes: (bytes) =>
      bytes
        .toString()
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => fromJsonString(GenerateEventSchema, line)),
  };
}

/**
 * The repetition of a generation with a complete reply. One empty event represents the reply.
 *
 * @param replyOf the complete reply
 * @param onReply called with the kept reply
 */
export function replyRepetition(
  generation: Generation,
  replyOf: () => Reply | undefined,
  onReply: (reply: Reply) => void,
): Repetition<GenerateEvent[]> {
  return {
    identity: [toBinary(GenerationSchema, generation)],
    toBytes: () => Buffer.from(toJsonString(ReplySchema, replyOf() ?? create(ReplySchema))),
    fromBytes(bytes) {
      onReply(fromJsonString(ReplySchema, bytes.toString()));
      return [create(GenerateEventSchema)];
    },
  };
}
