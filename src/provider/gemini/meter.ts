/** Meters a reply of generateContent from its bytes while they arrive. */
import type { NativeMeter } from "../native.ts";
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import { hasError } from "../../dialect/vendor-error.ts";
import { GeminiToolCount, UsageReader } from "../../dialect/gemini/usage.ts";
import { parseRecord } from "../../wire/json/value.ts";
import { ObjectScan, openBrace, quote } from "../../wire/json/scan.ts";
import { EventTemplate } from "../../wire/json/event-template.ts";

/** Each chunk's counts hold for the whole reply: the largest ones count. */
export class GeminiMeter implements NativeMeter {
  textBytes = 0;
  images = 0;
  isDone = false;
  isFailed = false;
  readonly #chunk = new ObjectScan();
  readonly #candidate = new ObjectScan();
  readonly #content = new ObjectScan();
  readonly #part = new ObjectScan();
  /** Unparsed: most counts are replaced before they are read. */
  #counts = "";
  /** The text that had come with the counts; undefined if none have come. */
  #countedTextBytes: number | undefined;
  readonly #usage = new UsageReader();
  readonly #tools = new GeminiToolCount();
  #template: EventTemplate | undefined;
  /** Whether the last chunk was one text and its counts, and where that text stands. */
  #isPlain = false;
  #texts = 0;
  #textStart = 0;
  #textEnd = 0;

  get usage(): Usage | undefined {
    this.#readCounts();
    return this.#usage.usage;
  }

  get uncountedTextBytes(): number {
    return this.textBytes - (this.#countedTextBytes ?? this.textBytes);
  }

  read(bytes: Buffer, start: number, end: number): void {
    const chunk = this.#chunk.scan(bytes, start, end);
    this.#template = undefined;
    this.#texts = 0;
    this.isFailed ||= hasError(chunk);
    if (chunk.kind("promptFeedback") === openBrace) {
      this.isDone ||= chunk.json("promptFeedback").includes('"blockReason"');
    }
    for (const { start: from, end: to } of chunk.elements("candidates")) {
      const candidate = this.#candidate.scan(bytes, from, to);
      if (candidate.kind("finishReason") === quote) this.isDone = true;
      this.#readTools(candidate);
      const content = candidate.find("content");
      if (content < 0) continue;
      this.#content.scan(bytes, candidate.start(content), candidate.end(content));
      for (const part of this.#content.elements("parts")) this.#readPart(bytes, part);
    }
    if (chunk.kind("usageMetadata") === openBrace) {
      this.#readCounts();
      this.#counts = chunk.json("usageMetadata");
      this.#countedTextBytes = this.textBytes;
    }
    this.#isPlain = this.#texts === 1 && !this.isDone;
  }

  learn(bytes: Buffer, { start, end }: { readonly start: number; readonly end: number }): void {
    const at = this.#chunk.find("usageMetadata");
    const counts = { start: this.#chunk.start(at) - start, end: this.#chunk.end(at) - start };
    const text = { start: this.#textStart - start, end: this.#textEnd - start };
    if (!this.#isPlain || at < 0 || text.end > counts.start) return;
    this.#template = new EventTemplate({ event: bytes.subarray(start, end), text, counts });
  }

  skim(bytes: Buffer, start: number, textBytesMax = Number.POSITIVE_INFINITY): number {
    const run = this.#template?.pass(bytes, start, textBytesMax - this.textBytes);
    if (run === undefined || run.end === start) return start;
    // The template takes no counts that fall.
    this.#counts = bytes.toString("latin1", run.countsStart, run.countsEnd);
    this.textBytes += run.textBytes;
    this.#countedTextBytes = this.textBytes;
    return run.end;
  }

  stop(usage: Usage | undefined): string {
    const { inputTokens = 0, outputTokens = 0 } = usage ?? {};
    return JSON.stringify({
      candidates: [{ content: { parts: [], role: "model" }, finishReason: "MAX_TOKENS", index: 0 }],
      usageMetadata: {
        promptTokenCount: inputTokens,
        candidatesTokenCount: outputTokens,
        totalTokenCount: inputTokens + outputTokens,
      },
    });
  }

  #readCounts(): void {
    const usageMetadata = this.#counts === "" ? undefined : parseRecord(this.#counts);
    this.#counts = "";
    this.#usage.read({ usageMetadata }, this.#tools.calls);
  }

  #readTools(candidate: ObjectScan): void {
    for (const name of ["groundingMetadata", "urlContextMetadata"]) {
      if (candidate.kind(name) === openBrace) this.#tools.read({ [name]: candidate.value(name) });
    }
  }

  /** Pictures of its thoughts are no result. */
  #readPart(bytes: Buffer, { start, end }: { readonly start: number; readonly end: number }): void {
    const part = this.#part.scan(bytes, start, end);
    this.textBytes += part.stringBytes("text");
    const text = part.find("text");
    this.#texts += text >= 0 && part.size === 1 && bytes[part.start(text)] === quote ? 1 : 2;
    this.#textStart = part.start(text) + 1;
    this.#textEnd = part.end(text) - 1;
    for (const name of ["functionCall", "executableCode", "codeExecutionResult"]) {
      if (part.kind(name) !== openBrace) continue;
      this.textBytes += part.json(name).length;
      if (name === "executableCode") this.#tools.addRun();
    }
    if (part.kind("inlineData") === openBrace && part.json("thought") !== "true") this.images++;
  }
}
