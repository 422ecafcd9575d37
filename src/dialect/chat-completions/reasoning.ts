/** Reasoning in chat completions: none of OpenAI's own, but compatible vendors show it, and some must get
 * it back with the calls that it led to. */
import { create } from "@bufbuild/protobuf";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  type ReasoningSeal,
  ReasoningSealSchema,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";

/** The members under which vendors of this style show reasoning: the first is the more common. */
export const reasoningMembers = ["reasoning_content", "reasoning"] as const;

/** What marks reasoning as this style's own: no vendor of another style gets it, and those of this one get
 * it under the same name. */
export function sealOf(member: string): ReasoningSeal {
  return create(ReasoningSealSchema, { dialect: Dialect.CHAT_COMPLETIONS, signature: member });
}
