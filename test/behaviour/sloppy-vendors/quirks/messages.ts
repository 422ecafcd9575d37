/** Quirks of vendors of messages. */
import { type Json, parseExactly } from "../vendor-reply.ts";
import { editLast, hasCalls, type Quirk, without } from "./quirk.ts";

const typeOf = (event: Json): string => event["type"] ?? "";
const isEnd = (event: Json): boolean =>
  typeOf(event) === "message_delta" && event["delta"]?.stop_reason != null;

const leaveOut =
  (...types: readonly string[]) =>
  (events: readonly Json[]): readonly Json[] =>
    events.filter((event) => !types.includes(typeOf(event)));

/** Changes the events of a type. */
const each =
  (type: string, edit: (event: Json) => Json) =>
  (events: readonly Json[]): readonly Json[] =>
    events.map((event) => (typeOf(event) === type ? edit(event) : event));

/** Changes the usage at the start, and at the end. */
function usages(start: (usage: Json) => Json, end: (usage: Json) => Json) {
  return (events: readonly Json[]): readonly Json[] =>
    events.map((event) => {
      if (typeOf(event) === "message_start" && event["message"]?.usage != null) {
        const { message } = event;
        return { ...event, message: { ...message, usage: start(message.usage) } };
      }
      return typeOf(event) === "message_delta" && event["usage"] != null
        ? { ...event, usage: end(event["usage"]) }
        : event;
    });
}

const same = (usage: Json): Json => usage;
const onlyOutput = ({ output_tokens, output_tokens_details }: Json): Json => ({
  output_tokens,
  output_tokens_details,
});

/** Writes another stop reason in place of one. */
function changeReason(from: string, to: string): Pick<Quirk, "stream" | "whole"> {
  return {
    stream: each("message_delta", (event) =>
      event["delta"]?.stop_reason === from
        ? { ...event, delta: { ...event["delta"], stop_reason: to } }
        : event,
    ),
    whole: (reply) => (reply["stop_reason"] === from ? { ...reply, stop_reason: to } : reply),
  };
}

export const messagesQuirks: readonly Quirk[] = [
  {
    name: "repeats the input as 0 at the end",
    vendors: "SGLang, AWS behind proxies",
    source: "envoyproxy/ai-gateway#1631",
    about: "usage",
    stream: usages(same, (usage) => ({
      ...usage,
      input_tokens: 0,
      cache_read_input_tokens: 0,
      cache_creation_input_tokens: 0,
    })),
  },
  {
    name: "repeats the input as null at the end",
    vendors: "proxies",
    source: "sgl-project/sglang#20830",
    about: "usage",
    stream: usages(same, (usage) => ({
      ...usage,
      input_tokens: null,
      cache_read_input_tokens: null,
      cache_creation_input_tokens: null,
    })),
  },
  {
    name: "reports only the output at the end",
    vendors: "Anthropic's older models",
    source: "https://docs.anthropic.com/en/docs/build-with-claude/streaming",
    about: "usage",
    stream: usages(same, onlyOutput),
  },
  {
    name: "reports 0 at the start, and all at the end",
    vendors: "GLM, Kimi, MiniMax, vLLM",
    source: "zai-org/GLM-5#139",
    about: "usage",
    stream: usages(() => ({ input_tokens: 0, output_tokens: 0 }), same),
  },
  {
    name: "reports no usage at the start",
    vendors: "small proxies",
    source: "zai-org/GLM-5#139",
    about: "usage",
    stream: each("message_start", (event) => ({
      ...event,
      message: without(event["message"], "usage"),
    })),
  },
  {
    name: "reports written tokens by how long they are kept, without their sum",
    vendors: "proxies of Bedrock and Vertex",
    source: "Wei-Shaw/sub2api#6125",
    about: "written",
    stream: (events) => usages(byAge, byAge)(events),
    whole: (reply) => ({ ...reply, usage: byAge(reply["usage"]) }),
  },
  {
    name: "ends a reply with calls by end_turn",
    vendors: "Anthropic",
    source: "earendil-works/pi#9681",
    about: "reason",
    suits: hasCalls,
    ...changeReason("tool_use", "end_turn"),
  },
  {
    name: "ends a text by tool_use",
    vendors: "proxies of chat completions",
    source: "jasonxu114514/opencode2api#27",
    about: "reason",
    suits: (of) => !hasCalls(of) && of.ending === "usual",
    ...changeReason("end_turn", "tool_use"),
  },
  {
    name: "reports the reason in an event of its own, before the usage",
    vendors: "proxies of Anthropic",
    source: "anomalyco/opencode#46171",
    about: "end",
    stream: (events) =>
      editLast(events, isEnd, (event) => [
        { ...event, usage: { output_tokens: 0 } },
        { type: "message_delta", delta: {}, usage: event["usage"] },
      ]),
  },
  {
    name: "reports usage in an event of its own, before the reason",
    vendors: "proxies of Anthropic",
    source: "anomalyco/opencode#46171",
    about: "end",
    stream: (events) =>
      editLast(events, isEnd, (event) => [
        { type: "message_delta", delta: { stop_reason: null }, usage: event["usage"] },
        without(event, "usage"),
      ]),
  },
  {
    name: "sends no message_stop",
    vendors: "compatible gateways, Copilot",
    source: "esengine/DeepSeek-Reasonix#8756",
    about: "stop",
    stream: leaveOut("message_stop"),
  },
  {
    name: "sends message_stop twice",
    vendors: "proxies of proxies",
    source: "Dstack-TEE/private-ai-gateway#114",
    about: "stop",
    stream: (events) => [...events, { type: "message_stop" }],
  },
  {
    name: "puts the text into the start of its block",
    vendors: "proxies of chat completions",
    source: "earendil-works/pi#7283",
    about: "blocks",
    stream(events) {
      const texts = new Map<number, string>();
      const isText = (event: Json): boolean => event["delta"]?.type === "text_delta";
      for (const event of events.filter(isText)) {
        texts.set(event["index"], (texts.get(event["index"]) ?? "") + event["delta"].text);
      }
      return each("content_block_start", (event) =>
        event["content_block"]?.type === "text"
          ? {
              ...event,
              content_block: { ...event["content_block"], text: texts.get(event["index"]) ?? "" },
            }
          : event,
      )(events.filter((event) => !isText(event)));
    },
  },
  {
    name: "puts the input into the start of its block",
    vendors: "proxies",
    source: "anomalyco/opencode#38733",
    about: "inputs",
    suits: hasCalls,
    stream: (events) =>
      withInputs(events).filter(({ delta }) => delta?.type !== "input_json_delta"),
  },
  {
    name: "puts the input into the start of its block, and into deltas",
    vendors: "proxies",
    source: "anomalyco/opencode#38733",
    about: "inputs",
    suits: hasCalls,
    stream: withInputs,
  },
  {
    name: "sends an empty object before the input",
    vendors: "Bedrock behind proxies",
    source: "microsoft/autogen#6843",
    about: "inputs",
    suits: hasCalls,
    stream: (events) =>
      events.flatMap((event) =>
        event["content_block"]?.type === "tool_use"
          ? [
              event,
              {
                type: "content_block_delta",
                index: event["index"],
                delta: { type: "input_json_delta", partial_json: "{}" },
              },
            ]
          : [event],
      ),
  },
  {
    name: "sends no input for a call without arguments",
    vendors: "Anthropic, proxies",
    source: "openai/openai-python#3502",
    about: "inputs",
    suits: (of) => hasCalls(of) && of.calls.every(({ input }) => input === "{}"),
    stream: (events) => events.filter(({ delta }) => delta?.type !== "input_json_delta"),
    whole: (reply) => ({
      ...reply,
      content: reply["content"].map((block: Json) =>
        block["type"] === "tool_use" ? { ...block, input: null } : block,
      ),
    }),
  },
  {
    name: "does not end blocks",
    vendors: "Kimi",
    source: "xemantic/anthropic-sdk-kotlin#147",
    about: "blocks",
    stream: leaveOut("content_block_stop"),
  },
  {
    name: "does not begin text blocks",
    vendors: "LiteLLM",
    source: "BerriAI/litellm#27442",
    about: "blocks",
    stream: (events) =>
      events.filter(
        (event) =>
          typeOf(event) !== "content_block_start" || event["content_block"]?.type === "tool_use",
      ),
  },
  {
    name: "gives every block index 0",
    vendors: "Ollama",
    source: "ollama/ollama#14816",
    about: "blocks",
    stream: (events) => events.map((event) => ("index" in event ? { ...event, index: 0 } : event)),
  },
  {
    name: "gives every block index 0, and does not end it",
    vendors: "Ollama",
    source: "ollama/ollama#17101",
    about: "blocks",
    stream: (events) =>
      events
        .filter((event) => typeOf(event) !== "content_block_stop")
        .map((event) => ("index" in event ? { ...event, index: 0 } : event)),
  },
  {
    name: "sends [DONE] in place of message_stop",
    vendors: "Copilot",
    source: "huggingface/tau#692",
    about: "stop",
    stream: leaveOut("message_stop"),
    streamText: (text) => `${text.trimEnd()}\n\ndata: [DONE]\n\n`,
  },
  {
    name: "leaves out the index of blocks",
    vendors: "proxies that omit 0",
    source: "langwatch/langwatch#6207",
    about: "blocks",
    stream: (events) =>
      events.map((event) => (event["index"] === 0 ? without(event, "index") : event)),
  },
  {
    name: "counts blocks from 1",
    vendors: "Z.ai, MiniMax",
    source: "MadAppGang/claudish#127",
    about: "blocks",
    stream: (events) =>
      events.map((event) => ("index" in event ? { ...event, index: event["index"] + 1 } : event)),
  },
  {
    name: "sends an empty text block first",
    vendors: "LiteLLM",
    source: "BerriAI/litellm#30765",
    about: "blocks",
    stream: ([first = {}, ...events]) => [
      first,
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
      { type: "content_block_stop", index: 0 },
      ...events.map((event) =>
        "index" in event ? { ...event, index: event["index"] + 1 } : event,
      ),
    ],
  },
  {
    name: "sends each piece of text as a block of its own",
    vendors: "proxies of vLLM",
    source: "BerriAI/litellm#29286",
    about: "blocks",
    stream(events) {
      let index = -1;
      return events.flatMap((event) => {
        if (typeOf(event) === "content_block_start") index++;
        const placed = "index" in event ? { ...event, index } : event;
        if (event["delta"]?.type !== "text_delta") return [placed];
        return [
          placed,
          { type: "content_block_stop", index },
          {
            type: "content_block_start",
            index: ++index,
            content_block: { type: "text", text: "" },
          },
        ];
      });
    },
  },
  {
    name: "sends empty text blocks and empty deltas",
    vendors: "Bedrock, vLLM",
    source: "agentgateway/agentgateway#2147",
    stream: (events) =>
      events.flatMap((event) =>
        event["delta"]?.type === "text_delta"
          ? [{ ...event, delta: { type: "text_delta", text: "" } }, event]
          : [event],
      ),
    whole: (reply) => ({ ...reply, content: [{ type: "text", text: "" }, ...reply["content"]] }),
  },
  {
    name: "sends pings and events that nobody knows",
    vendors: "Anthropic",
    source: "https://docs.anthropic.com/en/docs/build-with-claude/streaming",
    stream: (events) =>
      events.flatMap((event) => [event, { type: "ping" }, { type: "vendor_event", delta: {} }]),
  },
  {
    name: "leaves out empty members at the start of blocks",
    vendors: "aiproxy, codex2api",
    source: "labring/aiproxy#604",
    about: "starts",
    stream: (events) =>
      events.map((event) =>
        typeOf(event) === "content_block_start" && event["content_block"] != null
          ? {
              ...event,
              content_block: without(
                event["content_block"],
                ...["thinking", "signature", "text", "input"].filter((name) =>
                  ['""', "{}"].includes(JSON.stringify(event["content_block"][name])),
                ),
              ),
            }
          : event,
      ),
  },
  {
    name: "signs no thoughts",
    vendors: "GLM, Kimi, DeepSeek",
    source: "router-for-me/CLIProxyAPI#570",
    about: "signature",
    stream: (events) => events.filter(({ delta }) => delta?.type !== "signature_delta"),
    whole: (reply) => ({
      ...reply,
      content: reply["content"].map((block: Json) => without(block, "signature")),
    }),
  },
  {
    name: "leaves out role, type and content of the message at its start",
    vendors: "cc-switch",
    source: "farion1231/cc-switch#7396",
    about: "head",
    stream: each("message_start", (event) => ({
      ...event,
      message: without(event["message"], "role", "type", "content", "stop_reason"),
    })),
    whole: (reply) => without(reply, "role", "type", "stop_sequence"),
  },
  {
    name: "writes error null in every event",
    vendors: "proxies in Go",
    source: "QuantumNous/new-api#7486",
    stream: (events) => events.map((event) => ({ ...event, error: null })),
    whole: (reply) => ({ ...reply, error: null }),
  },
  {
    name: "writes no names of events",
    vendors: "compatible vendors",
    source: "vm0-ai/vm0#24687",
    about: "event names",
    streamText: (text) => text.replaceAll(/(?<=^|\n)event:[^\n]*\n/g, ""),
  },
];

/** Puts the whole input of each call into the start of its block. */
function withInputs(events: readonly Json[]): readonly Json[] {
  const inputs = new Map<Json, string>();
  const open = new Map<number, Json>();
  for (const event of events) {
    const { type, index, delta } = event;
    const start = open.get(index);
    if (type === "content_block_start") open.set(index, event);
    else if (delta?.type === "input_json_delta" && start !== undefined) {
      inputs.set(start, (inputs.get(start) ?? "") + delta.partial_json);
    }
  }
  return events.map((event) =>
    event["content_block"]?.type === "tool_use"
      ? {
          ...event,
          content_block: {
            ...event["content_block"],
            input: parseExactly(inputs.get(event) || "{}"),
          },
        }
      : event,
  );
}

function byAge(usage: Json): Json {
  const { cache_creation_input_tokens: written, ...rest } = usage;
  return {
    ...rest,
    cache_creation: { ephemeral_5m_input_tokens: written ?? 0, ephemeral_1h_input_tokens: 0 },
  };
}
