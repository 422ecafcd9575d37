/** What an interaction of Gemini costs, and says. */
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { Usage } from "../../gen/uas/type/v1/usage_pb.ts";
import { type JsonRecord, parseRecord, protoCountAt, recordAt } from "../dialect/json.ts";
import { ObjectScan, openBrace } from "../dialect/json/object-scan.ts";
import { reportedUsage } from "../dialect/reported-usage.ts";
import type { NativeMeter } from "./native.ts";
import type { TaskTokens } from "./task.ts";

/** Reads a whole interaction, or the events of one: the last usage counts. */
export class GeminiInteractionMeter implements NativeMeter {
  usage: Usage | undefined;
  textBytes = 0;
  images = 0;
  isDone = false;
  readonly #scan = new ObjectScan();
  readonly #inner = new ObjectScan();

  read(bytes: Buffer, start: number, end: number): void {
    const scan = this.#scan.scan(bytes, start, end);
    if (scan.find("event_type") < 0) {
      const interaction = parseRecord(bytes.toString("utf8", start, end));
      if (interaction === undefined) return;
      this.#readUsage(recordAt(interaction, "usage"));
      this.textBytes += Buffer.byteLength(interactionText(interaction as JsonObject));
      return;
    }
    const delta = scan.find("delta");
    if (delta >= 0) {
      const inner = this.#inner.scan(bytes, scan.start(delta), scan.end(delta));
      this.textBytes += inner.stringBytes("text") + inner.stringBytes("arguments");
    }
    if (scan.kind("interaction") !== openBrace) return;
    this.#readUsage(recordAt(parseRecord(scan.json("interaction")) ?? {}, "usage"));
    this.isDone ||= scan.is("event_type", "interaction.completed");
  }

  stop(usage: Usage | undefined): string {
    const { inputTokens = 0, outputTokens = 0 } = usage ?? {};
    return JSON.stringify({
      event_type: "interaction.completed",
      interaction: {
        status: "incomplete",
        usage: {
          total_input_tokens: inputTokens,
          total_output_tokens: outputTokens,
          total_tokens: inputTokens + outputTokens,
        },
      },
    });
  }

  #readUsage(usage: JsonRecord | undefined): void {
    if (usage === undefined) return;
    const told = interactionTokens(usage);
    if (told === undefined) return;
    const { inputTokens: input, cachedInputTokens: cached, outputTokens: output } = told;
    const { reasoningTokens: reasoning } = told;
    this.usage = reportedUsage({ input, cached, written: 0, output, reasoning }) ?? this.usage;
  }
}

/** Thoughts are output, and what tools have brought in is input. */
export function interactionTokens(usage: JsonRecord): TaskTokens | undefined {
  const input = protoCountAt(usage, "total_input_tokens");
  if (input === undefined) return undefined;
  const thought = protoCountAt(usage, "total_thought_tokens") ?? 0;
  return {
    inputTokens: input + (protoCountAt(usage, "total_tool_use_tokens") ?? 0),
    cachedInputTokens: protoCountAt(usage, "total_cached_tokens") ?? 0,
    outputTokens: (protoCountAt(usage, "total_output_tokens") ?? 0) + thought,
    reasoningTokens: thought,
  };
}

/** The texts of what it came to, without its thoughts. */
export function interactionText({ outputs, steps }: JsonObject): string {
  return [outputs, steps].flatMap((each) => textsIn(each ?? null)).join("");
}

function textsIn(value: JsonValue): readonly string[] {
  if (Array.isArray(value)) return value.flatMap((each) => textsIn(each));
  if (typeof value !== "object" || value === null) return [];
  const { type, text, content } = value;
  if (type === "thought" || type === "user_input") return [];
  return [...(typeof text === "string" ? [text] : []), ...textsIn(content ?? null)];
}
