/**
 * Tracks the choices of a relayed stream, so that the gateway can end it before its vendor does.
 */
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import type { RelayOptions } from "../dialect.ts";
import { countAt, type JsonRecord, parseRecord, recordsAt } from "../../wire/json/value.ts";
import { encodeUsage } from "./usage.ts";

/** State of a choice. */
type Progress = "begun" | "finished";

/**
 * Takes note of the choices of a stream. Of the usual one choice it keeps the first chunk, nothing
 * else.
 */
export class RelayedChoices {
  readonly #options: RelayOptions;
  /** The first chunk, as JSON: what follows has the same id, time and model. */
  #first: string | undefined;
  /** By index, if there are several; an index that is not there has not begun. */
  readonly #progress = new Map<number, Progress>();

  constructor(options: RelayOptions) {
    this.#options = options;
  }

  /** Whether a chunk has passed. */
  get hasBegun(): boolean {
    return this.#first !== undefined;
  }

  /** Records a relayed chunk, whose JSON spans `start` to `end`. */
  pass(source: Buffer, start: number, end: number): void {
    this.#first ??= source.toString("utf8", start, end);
    if (this.#options.choices > 1) this.#note(source.toString("utf8", start, end));
  }

  /**
   * Returns the chunks that finish every open choice, usage if the client requested it, and the
   * end.
   */
  stop(usage: Usage | undefined): string {
    const { hideUsage } = this.#options;
    const head = this.#head();
    const noUsage = hideUsage ? {} : { usage: null };
    const chunks: JsonRecord[] = this.#openChoices().map((index) => ({
      ...head,
      choices: [{ index, delta: this.#delta(index), logprobs: null, finish_reason: "length" }],
      ...noUsage,
    }));
    if (!hideUsage && usage) chunks.push({ ...head, choices: [], usage: encodeUsage(usage) });
    return `${chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("")}data: [DONE]\n\n`;
  }

  #note(json: string): void {
    const chunk = parseRecord(json);
    for (const choice of chunk === undefined ? [] : recordsAt(chunk, "choices")) {
      const index = countAt(choice, "index") ?? 0;
      const reason = choice["finish_reason"];
      const isFinished = typeof reason === "string" && reason !== "";
      if (isFinished) this.#progress.set(index, "finished");
      else if (!this.#progress.has(index)) this.#progress.set(index, "begun");
    }
  }

  #openChoices(): number[] {
    const all = Array.from({ length: this.#options.choices }, (_, index) => index);
    return all.filter((index) => this.#progress.get(index) !== "finished");
  }

  /** Clients take no choice without a role. */
  #delta(index: number): JsonRecord {
    const { choices } = this.#options;
    const hasBegun = choices === 1 ? this.hasBegun : this.#progress.has(index);
    return hasBegun ? {} : { role: "assistant", content: "" };
  }

  /** Members that all chunks of the stream share. */
  #head(): JsonRecord {
    const { publicModel } = this.#options;
    const first = parseRecord(this.#first ?? "") ?? { object: "chat.completion.chunk" };
    const { choices: _choices, usage: _usage, obfuscation: _padding, ...head } = first;
    return publicModel === undefined ? head : { ...head, model: publicModel };
  }
}
