/**
 * Adds up replies as the official SDKs and agents do, by the rules of each style and without the
 * gateway's decoders. {@link readStream} is compared with the SDKs themselves in the tests.
 */
import { type Json, parseExactly } from "./vendor-reply.ts";

/** A style that clients speak. */
export type CallerStyle = "chat" | "responses" | "messages";

export const callerStyles: readonly CallerStyle[] = ["chat", "responses", "messages"];

/** A call as a client has it. */
export interface ReadCall {
  readonly id: string;
  readonly name: string;
  readonly input: string;
}

/** A client's view of a reply. */
export interface Reading {
  readonly text: string;
  readonly reasoning: string;
  readonly refusal: string;
  readonly calls: readonly ReadCall[];
  readonly stop: string;
  readonly usage: unknown;
  /** The error's message in place of an end; empty if there is none. */
  readonly error: string;
}

/** Reads a stream. @throws Error if it breaks a rule of the style */
export function readStream(caller: CallerStyle, stream: string): Reading {
  return streamReaders[caller](eventsOf(stream));
}

/** Reads a whole reply. */
export function readWhole(caller: CallerStyle, json: string): Reading {
  // Inputs of messages are objects: their numbers are compared as written.
  return wholeReaders[caller](caller === "messages" ? parseExactly(json) : JSON.parse(json));
}

/** The data of the events, as servers of the gateway write them: one line each. */
function eventsOf(stream: string): readonly Json[] {
  return stream
    .split(/\r?\n\r?\n/)
    .map((frame) =>
      frame
        .split(/\r?\n/)
        .filter((line) => line.startsWith("data:"))
        .map((line) => line.slice("data:".length).replace(/^ /, ""))
        .join("\n"),
    )
    .filter((data) => data !== "")
    .map((data) => (data === "[DONE]" ? { isDone: true } : (JSON.parse(data) as Json)));
}

function must(holds: boolean, rule: string): void {
  if (!holds) throw new Error(`the stream breaks a rule of its style: ${rule}`);
}

const nothing: Reading = {
  text: "",
  reasoning: "",
  refusal: "",
  calls: [],
  stop: "",
  usage: undefined,
  error: "",
};

const text = (value: unknown): string => (typeof value === "string" ? value : "");

function readChatMessage(message: Json, finish: unknown, usage: unknown): Reading {
  return {
    text: text(message["content"]),
    reasoning: text(message["reasoning_content"]),
    refusal: text(message["refusal"]),
    calls: (message["tool_calls"] ?? []).map(({ id, function: called, custom }: Json) => ({
      id,
      name: (called ?? custom)["name"],
      input: called?.arguments ?? custom?.input,
    })),
    stop: text(finish),
    usage,
    error: "",
  };
}

/** The items of a response. */
function readItems(
  items: readonly Json[],
): Pick<Reading, "text" | "reasoning" | "refusal" | "calls"> {
  const contents = items.flatMap((item) => (item["type"] === "message" ? item["content"] : []));
  const joined = (type: string, member: string): string =>
    contents
      .filter((part: Json) => part["type"] === type)
      .map((part: Json) => part[member])
      .join("");
  return {
    text: joined("output_text", "text"),
    refusal: joined("refusal", "refusal"),
    reasoning: items
      .filter(({ type }) => type === "reasoning")
      .flatMap(({ summary, content }) => [...(summary ?? []), ...(content ?? [])])
      .map((part: Json) => part["text"])
      .join(""),
    calls: items
      .filter(({ type }) => type === "function_call" || type === "custom_tool_call")
      .map(({ call_id: id, name, arguments: args, input }) => ({ id, name, input: args ?? input })),
  };
}

function readResponse(response: Json): Reading {
  const { status, incomplete_details: details, usage, output } = response;
  return { ...readItems(output), stop: `${status} ${details?.reason ?? ""}`, usage, error: "" };
}

function readBlocks(message: Json): Reading {
  const blocks: Json[] = message["content"];
  const joined = (type: string, member: string): string =>
    blocks
      .filter((block) => block["type"] === type)
      .map((block) => block[member])
      .join("");
  return {
    text: joined("text", "text"),
    reasoning: joined("thinking", "thinking"),
    refusal: text(message["stop_details"]?.explanation),
    calls: blocks
      .filter(({ type }) => type === "tool_use")
      .map(({ id, name, input }) => ({ id, name, input: JSON.stringify(input) })),
    stop: text(message["stop_reason"]),
    usage: message["usage"],
    error: "",
  };
}

const wholeReaders: Readonly<Record<CallerStyle, (reply: Json) => Reading>> = {
  chat: ({ choices: [choice], usage }) =>
    readChatMessage(choice.message, choice.finish_reason, usage),
  responses: readResponse,
  messages: readBlocks,
};

const streamReaders: Readonly<Record<CallerStyle, (events: readonly Json[]) => Reading>> = {
  /** As `ChatCompletionStream`: calls by index, later members replace, arguments are joined. */
  chat(events) {
    const message: Json = { content: "", reasoning_content: "", refusal: "", tool_calls: [] };
    let finish: unknown;
    let usage: unknown;
    let isDone = false;
    for (const event of events) {
      must(!isDone, "nothing follows [DONE]");
      if (event["isDone"]) isDone = true;
      else if (event["error"] != null) return { ...nothing, error: event["error"].message };
      usage = event["usage"] ?? usage;
      for (const { delta, index, finish_reason: reason } of event["choices"] ?? []) {
        must(index === 0, "one choice has index 0");
        must(finish === undefined || Object.keys(delta).length === 0, "no delta follows the end");
        finish = reason ?? finish;
        for (const name of ["content", "reasoning_content", "refusal"]) {
          message[name] += delta[name] ?? "";
        }
        for (const each of delta["tool_calls"] ?? []) addCallDelta(message["tool_calls"], each);
      }
    }
    must(isDone, "a stream ends with [DONE]");
    return readChatMessage(message, finish, usage);
  },

  /**
   * As `ResponseStream`, and as agents that read deltas, complete items, or the last event: all
   * must agree.
   */
  responses(events) {
    const output: Json[] = [];
    const done: Json[] = [];
    let end: Json | undefined;
    for (const [at, event] of events.entries()) {
      const { type, response } = event;
      if (type === "response.failed") return { ...nothing, error: response.error.message };
      const failure = type === "error" ? (event["message"] ?? event["error"]) : event["error"];
      if (failure != null) return { ...nothing, error: failure.message ?? failure };
      must(end === undefined, "nothing follows the last event");
      must(event["sequence_number"] === at, "sequence numbers count the events");
      const item = output[event["output_index"]];
      switch (event["type"]) {
        case "response.output_item.added":
          must(event["output_index"] === output.length, "items are added in order");
          output.push(structuredClone(event["item"]));
          break;
        case "response.output_item.done":
          must(item !== undefined && item["id"] === event["item"].id, "done items were added");
          done.push(event["item"]);
          break;
        case "response.completed":
        case "response.incomplete":
          end = event["response"];
          break;
        default:
          addResponsesDelta(event, item);
      }
    }
    must(end !== undefined, "a stream ends with its response");
    const read = readResponse(end ?? {});
    for (const items of [output, done]) {
      const { stop: _stop, usage: _usage, error: _error, ...contents } = read;
      const same = JSON.stringify(readItems(items)) === JSON.stringify(ordered(contents));
      must(same, `deltas and items agree with the last event: ${JSON.stringify(readItems(items))}`);
    }
    return read;
  },

  /** As `MessageStream`. */
  messages(events) {
    let message: Json | undefined;
    let isOver = false;
    let open: number | undefined;
    const inputs = new Map<number, string>();
    for (const event of events) {
      must(!isOver, "nothing follows message_stop");
      const { type, index } = event;
      const blocks: Json[] = message?.["content"] ?? [];
      if (type === "error") return { ...nothing, error: event["error"].message };
      if (type === "message_start") {
        must(message === undefined, "one message_start");
        message = structuredClone(event["message"]);
      } else if (type === "message_delta") {
        must(open === undefined, "all blocks end before the message");
        Object.assign(message ?? {}, event["delta"]);
        message = { ...message, usage: { ...message?.["usage"], ...event["usage"] } };
      } else if (type === "message_stop") isOver = true;
      else if (type === "content_block_start") {
        must(message !== undefined && index === blocks.length, "blocks are in order");
        must(open === undefined, "one block is open");
        open = index;
        blocks.push(structuredClone(event["content_block"]));
      } else if (type === "content_block_delta") {
        must(open === index, "a delta belongs to the open block");
        const { delta } = event;
        const block = blocks[index] ?? {};
        if (delta.type === "text_delta") block["text"] += delta.text;
        if (delta.type === "thinking_delta") block["thinking"] += delta.thinking;
        if (delta.type === "input_json_delta") {
          inputs.set(index, (inputs.get(index) ?? "") + delta.partial_json);
        }
      } else if (type === "content_block_stop") {
        must(open === index, "the open block ends");
        open = undefined;
      }
    }
    must(isOver && message !== undefined, "a stream ends with message_stop");
    const read = readBlocks(message ?? {});
    const raw = [...inputs].filter(([at]) => message?.["content"][at].type === "tool_use");
    const calls = read.calls.map((call, place) => ({ ...call, input: raw[place]?.[1] || "{}" }));
    for (const { input } of calls) JSON.parse(input);
    return { ...read, calls };
  },
};

function ordered({
  text: said,
  refusal,
  reasoning,
  calls,
}: Omit<Reading, "stop" | "usage" | "error">) {
  return { text: said, refusal, reasoning, calls };
}

function addCallDelta(calls: Json[], { index, ...delta }: Json): void {
  must(index <= calls.length, "calls begin in order");
  const call = (calls[index] ??= {});
  for (const name of ["id", "type"]) call[name] = delta[name] ?? call[name];
  for (const form of ["function", "custom"]) {
    if (delta[form] == null) continue;
    const called = (call[form] ??= {});
    called.name = delta[form].name ?? called.name;
    for (const member of ["arguments", "input"]) {
      const piece = delta[form][member];
      if (piece != null) called[member] = (called[member] ?? "") + piece;
    }
  }
}

function addResponsesDelta(event: Json, item: Json | undefined): void {
  const { type, delta, part } = event;
  if (type === "response.created" || type === "response.in_progress") return;
  must(item !== undefined && item["id"] === event["item_id"], `the item of ${type} was added`);
  if (item === undefined) return;
  const content = event["content_index"];
  const summary = event["summary_index"];
  switch (type) {
    case "response.content_part.added":
      item["content"] = [...(item["content"] ?? []), structuredClone(part)];
      break;
    case "response.reasoning_summary_part.added":
      item["summary"].push(structuredClone(part));
      break;
    case "response.output_text.delta":
    case "response.reasoning_text.delta":
      item["content"][content].text += delta;
      break;
    case "response.refusal.delta":
      item["content"][content].refusal += delta;
      break;
    case "response.reasoning_summary_text.delta":
      item["summary"][summary].text += delta;
      break;
    case "response.function_call_arguments.delta":
      item["arguments"] += delta;
      break;
    case "response.custom_tool_call_input.delta":
      item["input"] += delta;
      break;
    default:
  }
}
