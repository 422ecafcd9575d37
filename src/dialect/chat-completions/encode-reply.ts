/** A whole reply for a client. */
import {
  type Part,
  type ToolCall,
  ToolType,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { Reply } from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { ReplyOptions } from "../codec.ts";
import { type JsonText, writeJson } from "../../wire/json/json-tree.ts";
import { listElements, memberOf, changeMembers } from "../../wire/json/source.ts";
import type { JsonRecord } from "../../wire/json/value.ts";
import { encodeCitation } from "./citation.ts";
import { encodeFinishReason } from "./finish-reason.ts";
import { addMembers, carriedMembers } from "./opaque-members.ts";
import { LostMembers, replyId } from "./wire.ts";
import { encodeUsage } from "./usage.ts";

/** Implements {@link CallerCodec.encodeReply}. */
export function encodeChatReply(reply: Reply, options: ReplyOptions): Buffer {
  const lost = new LostMembers(options);
  const { id, created, usage, serviceTier, stopReason } = reply;
  const message = encodeMessage(reply, lost);
  const hasRefusal = message["refusal"] !== null;
  const choice = {
    index: 0,
    message,
    logprobs: null,
    finish_reason: encodeFinishReason(stopReason, hasRefusal),
  };
  const body = {
    id: replyId(id, options.callId),
    object: "chat.completion",
    created: Number(created) || options.created,
    model: options.model,
    choices: [choice],
    ...(usage && { usage: encodeUsage(usage) }),
    ...(serviceTier && { service_tier: serviceTier }),
  };
  return Buffer.from(writeJson(body));
}

/** Implements {@link CallerCodec.joinChoices}: the first reply with the choices of all. */
export function joinChatReplies(replies: readonly Buffer[]): Buffer {
  const bodies = replies.map((reply) => reply.toString());
  const all = bodies.flatMap((body) => listElements(memberOf(body, "choices")));
  const choices = all.map((choice, index) => changeMembers(choice, { index: String(index) }));
  return Buffer.from(changeMembers(bodies[0] ?? "", { choices: `[${choices.join(",")}]` }));
}

function encodeMessage(reply: Reply, lost: LostMembers): JsonRecord {
  const said: MessageParts = {
    content: "",
    refusal: "",
    reasoning: [],
    calls: [],
    annotations: [],
    carried: [],
  };
  for (const part of reply.parts) add(said, part, lost);
  said.refusal += lost.ending(reply, said.refusal !== "");
  const { content, refusal, reasoning, calls, annotations } = said;
  const own: Record<string, unknown> = {};
  for (const { callId, members } of said.carried) {
    const call = said.calls.find(({ id }) => id === callId);
    addMembers(callId === "" ? own : (call ?? {}), members);
  }
  const saysNothing = content === "" && (calls.length > 0 || refusal !== "");
  return {
    role: "assistant",
    content: saysNothing ? null : content,
    refusal: refusal === "" ? null : refusal,
    ...(reasoning.length > 0 && { reasoning_content: reasoning.join("\n\n") }),
    ...(annotations.length > 0 && { annotations }),
    ...(calls.length > 0 && { tool_calls: calls }),
    ...own,
  };
}

/** The parts of a reply, by the members that they become. */
interface MessageParts {
  content: string;
  refusal: string;
  readonly reasoning: string[];
  readonly calls: Record<string, unknown>[];
  readonly annotations: JsonText[];
  /** Members of compatible vendors, of calls and of the message. */
  readonly carried: NonNullable<ReturnType<typeof carriedMembers>>[];
}

function add(said: MessageParts, part: Part, lost: LostMembers): void {
  const { kind } = part;
  switch (kind.case) {
    case "text": {
      const start = said.content.length;
      said.content += kind.value.text;
      for (const citation of kind.value.citations) {
        const annotation = encodeCitation(citation, { start, end: said.content.length });
        if (annotation === undefined) lost.add("citations");
        else said.annotations.push(annotation);
      }
      return;
    }
    case "refusal":
      said.refusal += kind.value.text;
      return;
    case "reasoning": {
      const carried = carriedMembers(kind.value);
      if (carried !== undefined) {
        said.carried.push(carried);
        return;
      }
      const { text, summaries, seal } = kind.value;
      said.reasoning.push(...[text, ...summaries].filter((each) => each !== ""));
      lost.addSeal(seal);
      return;
    }
    case "toolCall":
      said.calls.push(encodeCall(kind.value));
      return;
    case "media":
    case "toolResult":
    case "opaque":
    case undefined:
    default:
      lost.addPart(part);
  }
}

/** Clients parse a function's arguments: nothing at all is no JSON. */
function encodeCall({ id, name, type, input }: ToolCall): Record<string, unknown> {
  return type === ToolType.CUSTOM
    ? { id, type: "custom", custom: { name, input } }
    : { id, type: "function", function: { name, arguments: input || "{}" } };
}
