/** What a reply of generateContent costs, read from its bytes as they come. */
import type { Usage } from "../../gen/uas/type/v1/usage_pb.ts";
import { readUsage } from "../dialect/gemini/read-chunk.ts";
import { parseRecord } from "../dialect/json.ts";
import { ObjectScan, openBrace, quote } from "../dialect/object-scan.ts";
import type { NativeMeter } from "./native.ts";

/** Each chunk's counts hold for the whole reply: the last ones count. */
export class GeminiMeter implements NativeMeter {
  textBytes = 0;
  images = 0;
  isDone = false;
  readonly #chunk = new ObjectScan();
  readonly #candidate = new ObjectScan();
  readonly #content = new ObjectScan();
  readonly #part = new ObjectScan();
  /** As it was written: most are overtaken before anybody asks. */
  #counts = "";
  #usage: Usage | undefined;

  get usage(): Usage | undefined {
    if (this.#counts !== "") {
      const usageMetadata = parseRecord(this.#counts);
      this.#usage = usageMetadata && readUsage({ usageMetadata });
      this.#counts = "";
    }
    return this.#usage;
  }

  read(bytes: Buffer, start: number, end: number): void {
    const chunk = this.#chunk.scan(bytes, start, end);
    if (chunk.kind("usageMetadata") === openBrace) this.#counts = chunk.json("usageMetadata");
    if (chunk.kind("promptFeedback") === openBrace) {
      this.isDone ||= chunk.json("promptFeedback").includes('"blockReason"');
    }
    for (const { start: from, end: to } of chunk.elements("candidates")) {
      const candidate = this.#candidate.scan(bytes, from, to);
      if (candidate.kind("finishReason") === quote) this.isDone = true;
      const content = candidate.find("content");
      if (content < 0) continue;
      this.#content.scan(bytes, candidate.start(content), candidate.end(content));
      for (const part of this.#content.elements("parts")) this.#readPart(bytes, part);
    }
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

  /** Pictures of its thoughts are no result. */
  #readPart(bytes: Buffer, { start, end }: { readonly start: number; readonly end: number }): void {
    const part = this.#part.scan(bytes, start, end);
    this.textBytes += part.stringBytes("text");
    for (const name of ["functionCall", "executableCode", "codeExecutionResult"]) {
      if (part.kind(name) === openBrace) this.textBytes += part.json(name).length;
    }
    if (part.kind("inlineData") === openBrace && part.json("thought") !== "true") this.images++;
  }
}
