/**
 * The inputs of calls in a relayed stream. Some vendors send `{}` before the real input, and
 * clients join both to broken JSON. An event whose piece may be such a placeholder waits, with
 * everything behind it, until its meaning is clear. Then it passes unchanged if the piece belongs
 * to the input, else with an empty piece.
 *
 * A piece is decided by the next piece of its call, or by the end of its call or of the reply. A
 * later text and the real input of a later call decide it, too. The real input of an earlier call
 * decides nothing: some vendors announce all calls, each with `{}`, before they send the first
 * input.
 */
import { eventBytesMax } from "../core/limits.ts";
import { emptyBuffer } from "../core/bytes.ts";
import { StreamedInput, startsObject } from "./streamed-input.ts";

/** The first pieces of an input, as long as they may be a placeholder. */
interface Opening {
  fate: "unknown" | "input" | "placeholder";
}

/** The input of one call. */
export interface RelayedInput {
  /** The choice that the call belongs to. */
  readonly choice: number;
  /** Number of earlier inputs. */
  readonly place: number;
  readonly input: StreamedInput;
  opening: Opening | undefined;
}

/** A piece of an input in an event. */
export interface InputPiece {
  readonly text: string;
  /** Whether it repeats the whole input, so that clients must not get it. */
  readonly isRepeated: boolean;
  /** Whether it begins the real input, and a placeholder came before it. */
  readonly isRestart: boolean;
  /** Set if it may be a placeholder. */
  readonly opening: Opening | undefined;
}

const noPieces: readonly InputPiece[] = [];

interface HeldEvent {
  readonly bytes: Buffer;
  readonly pieces: readonly InputPiece[];
}

/**
 * A piece in the JSON of an event of any style. Quotes within texts are escaped, so nothing else
 * matches.
 */
const pieceMember = /("(?:arguments|partial_json|delta)"\s*:\s*)("(?:[^"\\]|\\.)*")/g;

/** Follows the inputs of a stream, and keeps the events that wait. */
export class HeldInputs {
  /**
   * Whether the next event must go through {@link pass}: it has a possible placeholder, or others
   * wait.
   */
  isActive = false;
  /** The pieces of inputs in the event, in their order. */
  pieces: readonly InputPiece[] = noPieces;
  readonly #events: HeldEvent[] = [];
  #heldBytes = 0;
  #begun = 0;
  /** Inputs that are undecided. */
  readonly #undecided = new Set<RelayedInput>();

  /** Begins the next event. */
  beginEvent(): void {
    this.pieces = noPieces;
  }

  /** Begins an input. @param choice the choice of its call. Default: the only one */
  begin(choice = 0): RelayedInput {
    return { choice, place: this.#begun++, input: new StreamedInput(), opening: undefined };
  }

  /** Reads the event's next piece of an input. */
  read(call: RelayedInput, text: string): InputPiece {
    const piece = this.#read(call, text);
    this.pieces = [...this.pieces, piece];
    return piece;
  }

  #read(call: RelayedInput, text: string): InputPiece {
    const { input } = call;
    const plain = { text, isRepeated: false, isRestart: false, opening: undefined };
    if (text === "") return plain;
    if (input.isRepeatedBy(text)) return { ...plain, isRepeated: true };
    const isRestart = call.opening !== undefined && startsObject(text);
    if (isRestart) this.#decide(call, "placeholder");
    input.add(text);
    if (input.isPlaceholder && input.text.trim() !== "") {
      call.opening ??= { fate: "unknown" };
      this.#undecided.add(call);
      this.isActive = true;
    } else if (!input.isPlaceholder) {
      this.#decide(call, "input");
      this.#endWhere(({ choice, place }) => choice === call.choice && place < call.place);
    }
    return { ...plain, isRestart, opening: call.opening };
  }

  /**
   * An input is complete. @param whole all of it, if the vendor repeats that. Default: it does not
   */
  end(call: RelayedInput, whole = ""): void {
    if (call.opening === undefined) return;
    const told = new StreamedInput();
    told.add(whole);
    this.#decide(call, told.isPlaceholder ? "input" : "placeholder");
  }

  /** The inputs of a choice are complete. */
  endChoice(choice: number): void {
    this.#endWhere((call) => call.choice === choice);
  }

  /** All inputs are complete. */
  endAll(): void {
    if (this.isActive) this.#endWhere(() => true);
  }

  /**
   * Takes the event as it is relayed. @returns it and those that waited for it; empty if it waits
   * too
   */
  pass(event: Buffer): Buffer {
    // A copy: the next read overwrites the buffer.
    this.#events.push({ bytes: Buffer.from(event), pieces: this.pieces });
    this.#heldBytes += event.length;
    if (this.#heldBytes > eventBytesMax) this.endAll();
    return this.#take();
  }

  /** Returns all events that wait: no more will come. */
  release(): Buffer {
    if (!this.isActive) return emptyBuffer;
    this.endAll();
    return this.#take();
  }

  #take(): Buffer {
    const first = this.#events.findIndex(isUndecided);
    const ready = this.#events.splice(0, first < 0 ? this.#events.length : first);
    this.isActive = this.#events.length > 0;
    for (const { bytes } of ready) this.#heldBytes -= bytes.length;
    return Buffer.concat(ready.map(written));
  }

  #decide(call: RelayedInput, fate: "input" | "placeholder"): void {
    if (call.opening !== undefined) call.opening.fate = fate;
    call.opening = undefined;
    this.#undecided.delete(call);
  }

  #endWhere(test: (call: RelayedInput) => boolean): void {
    for (const call of this.#undecided) if (test(call)) this.#decide(call, "input");
  }
}

function isUndecided({ pieces }: HeldEvent): boolean {
  return pieces.some(({ opening }) => opening?.fate === "unknown");
}

/** The event, without its placeholders. */
function written({ bytes, pieces }: HeldEvent): Buffer {
  const isPlaceholder = ({ opening }: InputPiece): boolean => opening?.fate === "placeholder";
  if (!pieces.some(isPlaceholder)) return bytes;
  // Latin-1 keeps all bytes.
  return Buffer.from(withoutPieces(bytes.toString("latin1"), pieces, isPlaceholder), "latin1");
}

/** The text of an event with some of its pieces emptied. All else stays. */
export function withoutPieces(
  event: string,
  pieces: readonly InputPiece[],
  isDropped: (piece: InputPiece) => boolean,
): string {
  // By text: two calls may have equal pieces, and other members the name of a piece.
  const byText = Map.groupBy(pieces, ({ text }) => text);
  return event.replaceAll(pieceMember, (member, name: string, text: string) => {
    const piece = byText.get(JSON.parse(text) as string)?.shift();
    return piece !== undefined && isDropped(piece) ? `${name}""` : member;
  });
}
