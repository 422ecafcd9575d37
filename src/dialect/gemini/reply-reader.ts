/** Reads a reply chunk by chunk: a whole one is a stream of a single chunk. */
import { type GenerateEvent, StopReason } from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import { type JsonRecord, textAt } from "../json.ts";
import { event } from "./events.ts";
import { PartReader } from "./part-reader.ts";
import { candidateOf, type Finish, readFailure, readFinish, readUsage } from "./read-chunk.ts";

/** The state of one reply. */
export class ReplyReader {
  readonly #parts = new PartReader();
  #id: string | undefined;
  #usage: Usage | undefined;
  #finish: Finish | undefined;
  #isOver = false;

  /** Whether an end or an error was told: nothing follows. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** What was reported so far. */
  get usage(): Usage | undefined {
    return this.#usage;
  }

  /** Reads the next chunk. */
  read(chunk: JsonRecord, events: GenerateEvent[]): void {
    if (this.#isOver) return;
    const candidate = candidateOf(chunk);
    this.#usage = readUsage(chunk) ?? this.#usage;
    const failure = readFailure(chunk, candidate);
    if (failure !== undefined) {
      this.#isOver = true;
      events.push(event({ case: "error", value: failure }));
      return;
    }
    this.#begin(chunk, events);
    this.#parts.read(candidate, this.#id ?? "", events);
    this.#finish = readFinish(chunk, candidate) ?? this.#finish;
  }

  /** No chunk follows. Tells the end where the vendor gave a reason for one: without, the reply was cut.
   * Not before, as some models give the reason with every chunk, and counts may come behind it. */
  end(events: GenerateEvent[]): void {
    if (this.#isOver || this.#finish === undefined) return;
    this.#isOver = true;
    this.#parts.close(events);
    const { reason, detail } = this.#finish;
    const isCall = reason === StopReason.END && this.#parts.hasCalls;
    events.push(
      event({
        case: "end",
        value: {
          $typeName: "uas.inference.v1.ReplyEnd",
          stopReason: isCall ? StopReason.TOOL_CALLS : reason,
          stopSequence: "",
          stopDetail: detail,
          ...(this.#usage && { usage: this.#usage }),
          serviceTier: "",
        },
      }),
    );
  }

  #begin(chunk: JsonRecord, events: GenerateEvent[]): void {
    if (this.#id !== undefined) return;
    this.#id = textAt(chunk, "responseId");
    events.push(
      event({
        case: "start",
        value: {
          $typeName: "uas.inference.v1.ReplyStart",
          id: this.#id,
          model: textAt(chunk, "modelVersion"),
          created: 0n,
          ...(this.#usage && { usage: this.#usage }),
        },
      }),
    );
  }
}
