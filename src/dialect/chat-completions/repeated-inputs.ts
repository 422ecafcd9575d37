/**
 * Only this style has the inputs of several choices and calls in one event: the other relays follow
 * one text at a time.
 */
import {
  isRecord,
  type JsonRecord,
  parseRecord,
  recordAt,
  recordsAt,
  countAt,
  textAt,
} from "../../wire/json/value.ts";
import type { HeldInputs, RelayedInput } from "../held-inputs.ts";

/** A call of the reply. */
interface RelayedCall {
  readonly id: string;
  readonly input: RelayedInput;
}

/**
 * Follows the inputs of a stream's calls, which may repeat a whole one, or begin with an empty
 * object.
 */
export class RepeatedInputs {
  readonly #held: HeldInputs;
  /** By choice and index. */
  readonly #calls = new Map<string, RelayedCall>();

  constructor(held: HeldInputs) {
    this.#held = held;
  }

  /** Reads the pieces of a chunk. @param json its text */
  read(json: string): void {
    for (const choice of recordsAt(parseRecord(json) ?? {}, "choices")) {
      const index = countAt(choice, "index") ?? 0;
      const delta = recordAt(choice, "delta");
      const calls = isRecord(delta) ? recordsAt(delta, "tool_calls") : [];
      for (const call of calls) {
        const piece = textAt(recordAt(call, "function") ?? {}, "arguments");
        this.#held.read(this.#inputOf(index, call), piece);
      }
      const hasText = isRecord(delta) && textAt(delta, "content") !== "";
      if (hasText || textAt(choice, "finish_reason") !== "") this.#held.endChoice(index);
    }
  }

  #inputOf(choice: number, wire: JsonRecord): RelayedInput {
    const key = `${choice} ${countAt(wire, "index") ?? 0}`;
    const id = textAt(wire, "id");
    let call = this.#calls.get(key);
    if (call === undefined || (id !== "" && id !== call.id)) {
      call = { id, input: this.#held.begin(choice) };
      this.#calls.set(key, call);
    }
    return call.input;
  }
}
