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
import { StreamedInput } from "../streamed-input.ts";

/** A call of the reply. */
interface RelayedCall {
  readonly id: string;
  readonly input: StreamedInput;
}

/**
 * An input in the JSON of a chunk: quotes within texts are escaped, so that nothing else matches.
 */
const inputMember = /("arguments"\s*:\s*)("(?:[^"\\]|\\.)*")/g;

/**
 * Follows the inputs of a stream's calls, and takes out what repeats a whole one. All other bytes
 * stay.
 */
export class RepeatedInputs {
  /** By choice and index. */
  readonly #calls = new Map<string, RelayedCall>();

  /**
   * Reads a chunk. @param json its text @returns the text without the repetition; undefined if
   * there is no repetition
   */
  withoutRepeated(json: string): string | undefined {
    /**
     * For each input of the chunk, in order, whether it repeats the input of its call: two calls
     * may have equal ones.
     */
    const marks = new Map<string, boolean[]>();
    let hasRepeated = false;
    const chunk = parseRecord(json) ?? {};
    for (const choice of recordsAt(chunk, "choices")) {
      const delta = recordAt(choice, "delta");
      if (!isRecord(delta)) continue;
      for (const call of recordsAt(delta, "tool_calls")) {
        const piece = textAt(recordAt(call, "function") ?? {}, "arguments");
        const isRepeated = this.#read(countAt(choice, "index") ?? 0, call, piece);
        marks.set(piece, [...(marks.get(piece) ?? []), isRepeated]);
        hasRepeated ||= isRepeated;
      }
    }
    if (!hasRepeated) return undefined;
    return json.replaceAll(inputMember, (member, name: string, text: string) =>
      marks.get(JSON.parse(text) as string)?.shift() === true ? `${name}""` : member,
    );
  }

  /** Adds a piece to its call. @returns whether it repeats the whole input */
  #read(choice: number, wire: JsonRecord, piece: string): boolean {
    const key = `${choice} ${countAt(wire, "index") ?? 0}`;
    const id = textAt(wire, "id");
    let call = this.#calls.get(key);
    if (call === undefined || (id !== "" && id !== call.id)) {
      call = { id, input: new StreamedInput() };
      this.#calls.set(key, call);
    }
    const { input } = call;
    if (input.isRepeatedBy(piece)) return true;
    input.add(piece);
    return false;
  }
}
