/** Meters a reply of DashScope from its bytes while they arrive. */
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { isRecord, countAt, parseRecord, recordAt } from "../../wire/json/value.ts";
import type { NativeMeter } from "../native.ts";
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import { ObjectScan, openBrace, quote } from "../../wire/json/scan.ts";
import { reportedUsage } from "../../dialect/features/usage.ts";
import { knownNames, unknownFigures } from "../../dialect/features/usage-members.ts";

/**
 * The counts of each event cover the whole reply, so the last ones apply. The same holds for its
 * text, unless the request sets `incremental_output`.
 */
export class DashscopeMeter implements NativeMeter {
  textBytes = 0;
  images = 0;
  isDone = false;
  isFailed = false;
  readonly #isIncremental: boolean;
  readonly #event = new ObjectScan();
  readonly #output = new ObjectScan();
  readonly #choice = new ObjectScan();
  readonly #message = new ObjectScan();
  readonly #part = new ObjectScan();
  /** Unparsed: most counts are replaced before they are read. */
  #counts = "";
  /** The text that had come with the counts; undefined if none have come. */
  #countedTextBytes: number | undefined;
  #last = "";

  constructor(isIncremental: boolean) {
    this.#isIncremental = isIncremental;
  }

  get usage(): Usage | undefined {
    const counts = this.#counts === "" ? undefined : parseRecord(this.#counts);
    return counts && dashscopeUsage(counts);
  }

  get uncountedTextBytes(): number {
    return this.textBytes - (this.#countedTextBytes ?? this.textBytes);
  }

  read(bytes: Buffer, start: number, end: number): void {
    const event = this.#event.scan(bytes, start, end);
    if (event.kind("output") === openBrace) {
      this.#last = bytes.toString("utf8", start, end);
      this.#readOutput(bytes, event);
    }
    if (event.kind("output") !== openBrace || this.#output.size === 0)
      this.isFailed ||= event.stringBytes("code") > 0;
    if (event.kind("usage") !== openBrace) return;
    this.#counts = event.json("usage");
    this.#countedTextBytes = this.textBytes;
  }

  #readOutput(bytes: Buffer, event: ObjectScan): void {
    const at = event.find("output");
    const output = this.#output.scan(bytes, event.start(at), event.end(at));
    const before = { text: this.textBytes, images: this.images };
    if (!this.#isIncremental) this.textBytes = this.images = 0;
    this.textBytes += output.stringBytes("text");
    this.#readEnd(output);
    for (const choice of output.elements("choices")) this.#readChoice(bytes, choice);
    // An event without text, as the last one may be, takes nothing back.
    this.textBytes = Math.max(this.textBytes, before.text);
    this.images = Math.max(this.images, before.images);
  }

  addedTextBytes(bytes: Buffer, start: number, end: number): number {
    const alone = new DashscopeMeter(this.#isIncremental);
    alone.read(bytes, start, end);
    return Math.max(0, alone.textBytes - (this.#isIncremental ? 0 : this.textBytes));
  }

  /** Returns the last event again, marked as stopped at its limit. */
  stop(usage: Usage | undefined): string {
    const last = parseRecord(this.#last) as JsonObject | undefined;
    const output = (last && recordAt(last, "output")) ?? { choices: [{ message: {} }] };
    const { inputTokens = 0, outputTokens = 0 } = usage ?? {};
    return JSON.stringify({
      ...last,
      output: this.#stopped(output as JsonObject),
      usage: {
        input_tokens: inputTokens,
        output_tokens: outputTokens,
        total_tokens: inputTokens + outputTokens,
      },
    });
  }

  #stopped({ text, choices, ...others }: JsonObject): JsonObject {
    const finish_reason = "length";
    if (!Array.isArray(choices)) {
      return { ...others, text: this.#isIncremental ? "" : (text ?? ""), finish_reason };
    }
    const all = choices.map((choice): JsonObject => {
      const { message = null, ...more } = objectOf(choice);
      const { content = "" } = objectOf(message);
      const said = this.#isIncremental ? "" : content;
      return { ...more, finish_reason, message: { role: "assistant", content: said } };
    });
    return { ...others, choices: all };
  }

  #readChoice(bytes: Buffer, { start, end }: { readonly start: number; readonly end: number }) {
    const choice = this.#choice.scan(bytes, start, end);
    this.#readEnd(choice);
    const at = choice.find("message");
    if (choice.kind("message") !== openBrace) return;
    const message = this.#message.scan(bytes, choice.start(at), choice.end(at));
    this.textBytes += message.stringBytes("content") + message.stringBytes("reasoning_content");
    for (const part of message.elements("content")) {
      const { textBytes, isImage } = this.#readPart(bytes, part);
      this.textBytes += textBytes;
      if (isImage) this.images++;
    }
    const calls = message.elements("tool_calls");
    for (const call of calls) this.textBytes += call.end - call.start;
  }

  #readPart(bytes: Buffer, { start, end }: { readonly start: number; readonly end: number }) {
    const part = this.#part.scan(bytes, start, end);
    return { textBytes: part.stringBytes("text"), isImage: part.kind("image") === quote };
  }

  /** It writes `"null"`, a text, for no reason yet. */
  #readEnd(scan: ObjectScan): void {
    const reason = scan.string("finish_reason");
    if (reason !== "" && reason !== "null") this.isDone = true;
  }
}

function objectOf(value: JsonValue): JsonObject {
  return isRecord(value) ? value : {};
}

/** Embeddings only have a total. */
function dashscopeUsage(counts: Readonly<Record<string, unknown>>): Usage | undefined {
  const inputTokens = countAt(counts, "input_tokens") ?? countAt(counts, "total_tokens");
  if (inputTokens === undefined) return undefined;
  const read = recordAt(counts, "prompt_tokens_details") ?? {};
  const made = recordAt(counts, "output_tokens_details") ?? {};
  return reportedUsage({
    input: inputTokens,
    cached: read["cached_tokens"],
    written: read["cache_creation_input_tokens"],
    output: countAt(counts, "output_tokens") ?? 0,
    reasoning: made["reasoning_tokens"],
    unknown: unknownFigures(counts, knownMembers),
  });
}

/** The members of its usage. */
const knownMembers = {
  ...knownNames("input_tokens", "output_tokens", "total_tokens"),
  ...knownNames("image_tokens", "video_tokens", "audio_tokens", "image_count", "width", "height"),
  input_tokens_details: knownNames("text_tokens", "image_tokens", "video_tokens", "audio_tokens"),
  output_tokens_details: knownNames("text_tokens", "reasoning_tokens", "audio_tokens"),
  prompt_tokens_details: {
    ...knownNames("cached_tokens", "cache_creation_input_tokens"),
    cache_creation: knownNames("ephemeral_5m_input_tokens"),
  },
};
