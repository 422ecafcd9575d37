/**
 * Relays replies. Bytes pass unchanged except for the model name and usage that only the gateway
 * requested.
 */
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import { eventBytesMax } from "../../core/limits.ts";
import { emptyBuffer } from "../../core/bytes.ts";
import type { GatewayError } from "../../core/errors.ts";
import { errorBody } from "../codec.ts";
import type { RelayedReply, RelayOptions, StreamRelay } from "../dialect.ts";
import { EventTemplate, type TemplateRun } from "../../wire/json/event-template.ts";
import {
  endOfString,
  equalsAscii,
  isSpace,
  ObjectScan,
  skipSpace,
  type Span,
} from "../../wire/json/scan.ts";
import { Splicer } from "../../wire/json/splice.ts";
import { isRecord, parseRecord, textAt, UnreadableReplyError } from "../../wire/json/value.ts";
import {
  dataLinesOf,
  type EventPlace,
  EventSplitter,
  missingEnd,
  type UnfinishedEvent,
} from "../../wire/sse/event-stream.ts";
import { grownUsage } from "../features/usage.ts";
import { HeldInputs, type InputPiece, withoutPieces } from "../held-inputs.ts";
import {
  emptyStream,
  errorFacts,
  errorWords,
  isOperatorFault,
  outOfService,
  refuseErrorReply,
  streamErrorCode,
  toStreamError,
  withErrorWords,
} from "../vendor-error.ts";
import { isFailureReason } from "./finish-reason.ts";
import { RepeatedInputs } from "./repeated-inputs.ts";
import { chunkUsage, decodeUsage } from "./usage.ts";
import { RelayedChoices } from "./relayed-output.ts";

/** Implements {@link TextDialect.relayReply}. */
export function relayChatReply(body: Buffer, options: RelayOptions): RelayedReply {
  refuseErrorReply(new ObjectScan().scan(body, 0, body.length), "choices");
  const scan = new ChunkScan();
  scan.scan(body, 0, body.length);
  if (scan.failure !== "") throw new UnreadableReplyError(`the reply ended in ${scan.failure}`);
  const usage = readUsage(body, scan, { start: 0, end: body.length });
  const splicer = new Splicer();
  restoreModel(body, scan, { splicer, model: modelBytes(options) });
  return {
    body: splicer.apply(body, body.length),
    usage: usage && withTier(usage, serviceTierOf(body, scan)),
    textBytes: scan.textBytes,
  };
}

/** Implements {@link VendorCodec.addedTextBytes}. */
export function addedChatText(event: Buffer): number {
  const relay = new ChatStreamRelay({ publicModel: undefined, hideUsage: false, choices: 1 });
  relay.push([event]);
  return relay.textBytes;
}

/** Implements {@link TextDialect.relayStream}. */
export class ChatStreamRelay implements StreamRelay {
  usage: Usage | undefined;
  textBytes = 0;
  textPieces = 0;
  finished = false;
  done = false;
  failed = false;
  unread: Buffer | undefined;

  readonly #splitter = new EventSplitter(eventBytesMax);
  readonly #splicer = new Splicer();
  readonly #scan = new ChunkScan();
  /** Template of the last plain event; `undefined` before the first. */
  #template: EventTemplate | undefined;
  readonly #model: Buffer | undefined;
  readonly #hideUsage: boolean;
  /** Number of unfinished choices. */
  #openChoices: number;
  readonly #choices: RelayedChoices;
  readonly #held = new HeldInputs();
  readonly #inputs = new RepeatedInputs(this.#held);
  /** Whether the event has a piece of a call's input. */
  #hasInput = false;
  /** The text that had come with {@link usage}. */
  #countedTextBytes = 0;
  /** Empty if none was reported. */
  #serviceTier = "";

  constructor(options: RelayOptions) {
    this.#model = modelBytes(options);
    this.#openChoices = options.choices;
    this.#hideUsage = options.hideUsage;
    this.#choices = new RelayedChoices(options);
  }

  get unfinished(): UnfinishedEvent {
    return this.#splitter;
  }

  get uncountedTextBytes(): number {
    return this.usage === undefined ? 0 : this.textBytes - this.#countedTextBytes;
  }

  push(pieces: readonly Buffer[]): Buffer {
    return this.pushUntil(pieces, Number.POSITIVE_INFINITY);
  }

  pushUntil(pieces: readonly Buffer[], textBytesMax: number): Buffer {
    // Nothing follows an error, in particular no terminal event, and nothing the terminal event.
    this.unread = undefined;
    if (this.failed || this.done) return emptyBuffer;
    const source = this.#splitter.begin(pieces);
    // Nothing overtakes an event that waits.
    const run = this.#held.isActive ? undefined : this.#matching(source, 0, textBytesMax);
    // Most reads are nothing but such events.
    if (run !== undefined && run.end === source.length) {
      const { out = source } = run;
      this.#splitter.finish(source.length, out);
      return out;
    }
    let at = this.#replaceRun(run, 0);
    do {
      const place = at < source.length ? this.#splitter.next(at) : undefined;
      if (place === undefined) break;
      if (place.end - at > textBytesMax - this.textBytes) {
        this.unread = this.#splitter.leave(at);
        break;
      }
      const before = this.#splicer.size;
      this.#onEvent(source, place);
      at = place.end;
      if (this.#held.isActive) this.#hold(source, place, before);
      if (!this.#held.isActive) {
        at = this.#replaceRun(this.#matching(source, at, textBytesMax), at);
      }
    } while (!this.failed && !this.done);
    const passed = this.#splicer.apply(source, at);
    // Bytes after the terminal event are dropped.
    this.#splitter.finish(this.done ? source.length : at, passed);
    return passed;
  }

  end(): Buffer {
    const missing = this.failed || this.done ? undefined : missingEnd(this.#splitter.rest);
    const last = missing === undefined ? emptyBuffer : this.push([missing]);
    return Buffer.concat([last, this.#held.release()]);
  }

  errorEvent(error: GatewayError): Buffer {
    return Buffer.concat([this.#held.release(), asErrorEvent(error)]);
  }

  stop(usage: Usage | undefined): Buffer {
    return Buffer.concat([this.#held.release(), Buffer.from(this.#choices.stop(usage))]);
  }

  /**
   * Relays an event that waits, or that decides about those that do. @param before number of edits
   * before it
   */
  #hold(source: Buffer, place: EventPlace, before: number): void {
    if (this.failed || this.done) this.#held.endAll();
    const event = this.#splicer.preview(before, source, place);
    this.#splicer.clear(before);
    this.#splicer.replace(place.start, place.end, this.#held.pass(event));
  }

  /** Passes over events that differ from an earlier one in their text only. */
  #matching(source: Buffer, start: number, textBytesMax: number): TemplateRun | undefined {
    if (this.#template === undefined || start === source.length || this.failed) return undefined;
    const run = this.#template.pass(source, start, textBytesMax - this.textBytes);
    this.textPieces += run.events;
    this.textBytes += run.textBytes;
    return run;
  }

  /** Puts the relayed form of a run that begins at `start` in its place; returns its end. */
  #replaceRun(run: TemplateRun | undefined, start: number): number {
    if (run === undefined) return start;
    if (run.out !== undefined) this.#splicer.replace(start, run.end, run.out);
    return run.end;
  }

  #onEvent(source: Buffer, place: EventPlace): void {
    this.#held.beginEvent();
    if (place.dataLines === 0) return;
    if (place.dataLines > 1) return this.#onSplitData(source, place);
    const { dataStart, dataEnd } = place;
    if (source[dataStart] !== 0x7b) {
      if (isDone(source, dataStart, dataEnd)) this.#onDone(place);
      return;
    }
    this.#hasInput = source.subarray(dataStart, dataEnd).includes('"arguments"');
    if (this.#hasInput || this.#held.isActive) {
      const sent = source.toString("utf8", dataStart, dataEnd);
      this.#inputs.read(sent);
      const { pieces } = this.#held;
      if (pieces.some(isRepeated)) {
        const json = withoutPieces(sent, pieces, isRepeated);
        return this.#onRewritten(json, place, (event, inner) => this.#relayChunk(event, inner));
      }
    }
    this.#relayChunk(source, place);
  }

  /** Relays an event whose data are one object. */
  #relayChunk(source: Buffer, place: EventPlace): void {
    const { dataStart, dataEnd } = place;
    const before = this.#splicer.size;
    this.#onChunk(source, dataStart, dataEnd);
    if (this.failed) return this.#onFailure(source, place);
    if (this.#isInjectedUsage(source)) {
      this.#splicer.replace(place.start, place.end);
      return;
    }
    const { usageStart, modelStart } = this.#scan;
    // Replacements go in ascending order.
    if (usageStart < modelStart) this.#hideNullUsage(source);
    restoreModel(source, this.#scan, { splicer: this.#splicer, model: this.#model });
    if (usageStart > modelStart) this.#hideNullUsage(source);
    this.#learn(source, place, before);
  }

  /** The end of the stream, or a failure if nothing came before it. */
  #onDone({ start, end }: EventPlace): void {
    if (this.#choices.hasBegun) this.finished = this.done = true;
    else {
      this.failed = true;
      this.#splicer.replace(start, end, asErrorEvent(emptyStream()));
    }
  }

  /**
   * Relays an error with the strings that the style promises. One in another form, or about the
   * operator's account, becomes the gateway's own.
   */
  #onFailure(source: Buffer, { start, end, dataStart, dataEnd }: EventPlace): void {
    const json = source.subarray(dataStart, dataEnd);
    const chunk = parseRecord(json.toString("utf8")) ?? {};
    const { error } = chunk;
    const reason = this.#scan.failure;
    const facts =
      reason === ""
        ? errorFacts(error ?? chunk)
        : { code: reason, type: "", message: `The model's vendor ended the reply in "${reason}"` };
    const isOwn = isRecord(error) && textAt(error, "message") !== "" && !isOperatorFault(facts);
    const words = errorWords(streamErrorCode(facts));
    const edited = isOwn ? withErrorWords(json, ["error"], words) : undefined;
    if (edited === undefined) {
      this.textBytes -= this.#scan.textBytes;
      const failure = isOperatorFault(facts) ? outOfService() : toStreamError(facts);
      return this.#splicer.replace(start, end, asErrorEvent(failure));
    }
    const scan = new ChunkScan();
    scan.scan(edited, 0, edited.length);
    const splicer = new Splicer();
    restoreModel(edited, scan, { splicer, model: this.#model });
    this.#splicer.replace(dataStart, dataEnd, splicer.apply(edited, edited.length));
  }

  /** Learns the template of an event with one text and nothing else of interest. */
  #learn(source: Buffer, place: EventPlace, before: number): void {
    const { texts, textStart, textEnd, finishes, errorStart, usageStart, usageEnd } = this.#scan;
    const isPlain =
      texts === 1 &&
      // Inputs are followed piece by piece.
      !this.#hasInput &&
      finishes === 0 &&
      errorStart < 0 &&
      !this.#scan.hasOtherUsage &&
      (usageStart < 0 || isNull(source, usageStart, usageEnd)) &&
      textEnd > textStart;
    if (!isPlain) return;
    const { start, end } = place;
    const text = { start: textStart - start, end: textEnd - start };
    const shift = this.#splicer.shift(before, textStart);
    const out = {
      event: this.#splicer.preview(before, source, place),
      textStart: text.start + shift,
    };
    // A copy, since the next read overwrites the buffer.
    this.#template = new EventTemplate({
      event: Buffer.from(source.subarray(start, end)),
      text,
      out,
    });
  }

  /** Reads one chunk into {@link ChunkScan} and the stream's totals. */
  #onChunk(source: Buffer, start: number, end: number): void {
    const scan = this.#scan;
    scan.scan(source, start, end);
    this.#choices.pass(source, start, end);
    if (scan.textBytes > 0) this.textPieces += 1;
    this.textBytes += scan.textBytes;
    this.#openChoices -= scan.finishes;
    if (this.#openChoices <= 0) this.finished = true;
    this.failed = scan.failure !== "" || scan.isError || saysError(source, scan);
    const usage = readUsage(source, scan, { start, end });
    if (this.#serviceTier === "" || usage !== undefined) {
      this.#serviceTier = serviceTierOf(source, scan) || this.#serviceTier;
    }
    if (usage === undefined) return;
    this.usage = grownUsage(this.usage, withTier(usage, this.#serviceTier));
    this.#countedTextBytes = this.textBytes;
  }

  /** Whether the chunk exists only because the gateway requested usage: no choices, only usage. */
  #isInjectedUsage(source: Buffer): boolean {
    const { usageStart, usageEnd, choicesEmpty } = this.#scan;
    return (
      this.#hideUsage && choicesEmpty && usageStart >= 0 && !isNull(source, usageStart, usageEnd)
    );
  }

  #hideNullUsage(source: Buffer): void {
    const { usageStart, usageEnd, usageCutStart, usageCutEnd } = this.#scan;
    if (!this.#hideUsage || usageStart < 0 || !isNull(source, usageStart, usageEnd)) return;
    this.#splicer.replace(usageCutStart, usageCutEnd);
  }

  /**
   * Data in several lines: legal, though no vendor sends it. Joined, read, and written as one line.
   */
  #onSplitData(source: Buffer, place: EventPlace): void {
    const data = dataLinesOf(source.toString("utf8", place.start, place.end)).join(" ");
    this.#onRewritten(data, place, (event, inner) => this.#onEvent(event, inner));
  }

  /**
   * Reads other data in the place of an event's, and relays it as one line. @param read relays the
   * event of one line
   */
  #onRewritten(
    data: string,
    place: EventPlace,
    read: (event: Buffer, inner: EventPlace) => void,
  ): void {
    const event = Buffer.from(`data: ${data}\n\n`);
    const inner = {
      start: 0,
      end: event.length,
      dataStart: 6,
      dataEnd: event.length - 2,
      dataLines: 1,
    };
    const outer = this.#splicer.size;
    read(event, inner);
    const edited = this.#splicer.take(outer, event);
    this.#splicer.replace(place.start, place.end, edited);
  }
}

function isRepeated(piece: InputPiece): boolean {
  return piece.isRepeated;
}

function asErrorEvent(error: GatewayError): Buffer {
  return Buffer.from(`data: ${JSON.stringify(errorBody(error))}\n\n`);
}

interface ModelEdit {
  readonly splicer: Splicer;
  readonly model: Buffer | undefined;
}

/** Writes the public model name if the vendor wrote a string; null stays. */
function restoreModel(source: Buffer, scan: ChunkScan, { splicer, model }: ModelEdit): void {
  if (model === undefined || scan.modelStart < 0 || source[scan.modelStart] !== 0x22) return;
  splicer.replace(scan.modelStart, scan.modelEnd, model);
}

/** Whether the chunk has an error: a member that is neither null, false nor empty. */
function saysError(source: Buffer, { errorStart, errorEnd }: ChunkScan): boolean {
  if (errorStart < 0) return false;
  return !/^(?:null|false|0|""|\{\s*\}|\[\s*\])$/.test(
    source.toString("utf8", errorStart, errorEnd),
  );
}

function modelBytes({ publicModel }: RelayOptions): Buffer | undefined {
  return publicModel === undefined ? undefined : Buffer.from(JSON.stringify(publicModel));
}

function isDone(source: Buffer, start: number, end: number): boolean {
  return source.toString("latin1", start, end).trimEnd() === "[DONE]";
}

function isNull(source: Buffer, start: number, end: number): boolean {
  return end - start === 4 && source[start] === 0x6e;
}

/** The vendor's usage in a chunk; `undefined` if it is unusable. */
function readUsage(source: Buffer, scan: ChunkScan, { start, end }: Span): Usage | undefined {
  const { usageStart, usageEnd } = scan;
  // In another place it is rare: only then the whole chunk is parsed.
  if (scan.hasOtherUsage) return chunkUsage(parseRecord(source.toString("utf8", start, end)) ?? {});
  if (usageStart < 0 || isNull(source, usageStart, usageEnd)) return undefined;
  return decodeUsage(parseRecord(source.toString("utf8", usageStart, usageEnd)));
}

/** Returns the service tier of a chunk, in the vendor's word; empty if there is none. */
function serviceTierOf(source: Buffer, { tierStart, tierEnd }: ChunkScan): string {
  if (tierStart < 0 || source[tierStart] !== 0x22) return "";
  return source.toString("utf8", tierStart + 1, tierEnd - 1);
}

function withTier(usage: Usage, tier: string): Usage {
  if (tier !== "") usage.serviceTier = tier;
  return usage;
}

/**
 * Result of scanning one chunk. Offsets refer to the scanned buffer; -1 if absent. One object is
 * reused.
 */
class ChunkScan {
  modelStart = -1;
  modelEnd = -1;
  /** The member `usage` with the comma that joins it to the rest, for taking it out. */
  usageCutStart = -1;
  usageCutEnd = -1;
  usageStart = -1;
  usageEnd = -1;
  /** Whether usage may be in another place: in a choice, or in `x_groq`. */
  hasOtherUsage = false;
  errorStart = -1;
  errorEnd = -1;
  /** The member `service_tier`. */
  tierStart = -1;
  tierEnd = -1;
  /** Whether `choices` is an empty array. */
  choicesEmpty = false;
  /** Number of choices with a finish reason. An empty reason does not count. */
  finishes = 0;
  /** The reason if it reports a failure; empty otherwise. */
  failure = "";
  /** Whether the whole object is an error. */
  isError = false;
  /**
   * Bytes of text in deltas and messages: string values at any depth below them, but for the role.
   */
  textBytes = 0;

  /** Number of strings with text, and the position of the last one. */
  texts = 0;
  textStart = -1;
  textEnd = -1;

  #memberStart = 0;
  #keyStart = 0;
  #keyEnd = 0;
  #choicesStart = -1;
  #inText = false;
  #keyIsFinish = false;
  #keyIsRole = false;

  /** Scans the JSON object from `start` to `end`. */
  scan(bytes: Buffer, start: number, end: number): void {
    this.#reset();
    let depth = 0;
    let valueStart = -1;
    let firstMember = true;
    for (let i = start; i < end; i++) {
      const byte = bytes[i];
      if (byte === 0x22) {
        const close = endOfString(bytes, i + 1, end);
        const isKey = bytes[close + 1] === 0x3a || isKeyBeforeSpace(bytes, close + 1, end);
        if (depth === 1 && valueStart < 0) {
          this.#keyStart = i;
          this.#keyEnd = close;
        } else if (this.#choicesStart >= 0) {
          this.#stringInChoices(bytes, i, close, depth, isKey);
        }
        i = close;
      } else if (byte === 0x3a) {
        if (depth === 1 && valueStart < 0) {
          valueStart = skipSpace(bytes, i + 1, end);
          if (this.#keyIs(bytes, "choices")) this.#choicesStart = valueStart;
        }
      } else if (byte === 0x2c) {
        if (depth === 1) {
          this.#member(bytes, valueStart, i, firstMember);
          this.#memberStart = i;
          valueStart = -1;
          firstMember = false;
        }
      } else if (byte === 0x7b || byte === 0x5b) {
        depth++;
        if (depth === 1) this.#memberStart = i + 1;
      } else if (byte === 0x7d || byte === 0x5d) {
        if (depth === 1 && valueStart >= 0) this.#member(bytes, valueStart, i, firstMember);
        depth--;
        if (depth === 0) return;
      }
    }
  }

  #reset(): void {
    this.modelStart = this.usageStart = this.errorStart = this.tierStart = -1;
    this.modelEnd = this.usageEnd = this.errorEnd = this.tierEnd = -1;
    this.usageCutStart = this.usageCutEnd = -1;
    this.choicesEmpty = this.hasOtherUsage = false;
    this.textBytes = this.texts = this.finishes = 0;
    this.failure = "";
    this.isError = false;
    this.#choicesStart = -1;
    this.#inText = this.#keyIsFinish = this.#keyIsRole = false;
  }

  #member(bytes: Buffer, valueStart: number, at: number, first: boolean): void {
    const valueEnd = trimSpace(bytes, valueStart, at);
    if (this.#keyIs(bytes, "model")) {
      this.modelStart = valueStart;
      this.modelEnd = valueEnd;
    } else if (this.#keyIs(bytes, "usage")) {
      this.usageStart = valueStart;
      this.usageEnd = valueEnd;
      // The first member goes with the comma behind it, any other with the one before it.
      this.usageCutStart = first ? this.#keyStart : this.#memberStart;
      this.usageCutEnd = first && bytes[at] === 0x2c ? at + 1 : valueEnd;
    } else if (this.#keyIs(bytes, "x_groq")) {
      this.hasOtherUsage = true;
    } else if (this.#keyIs(bytes, "error")) {
      this.errorStart = valueStart;
      this.errorEnd = valueEnd;
    } else if (this.#keyIs(bytes, "service_tier")) {
      this.tierStart = valueStart;
      this.tierEnd = valueEnd;
    } else if (this.#keyIs(bytes, "object")) {
      this.isError = equalsAscii(bytes, valueStart, valueEnd, '"error"');
    } else if (this.#choicesStart >= 0 && valueStart === this.#choicesStart) {
      this.choicesEmpty = skipSpace(bytes, valueStart + 1, valueEnd) === valueEnd - 1;
      this.#choicesStart = -1;
    }
  }

  /** Depths inside choices: 2 the array, 3 a choice, 4 its delta or message. */
  #stringInChoices(
    bytes: Buffer,
    open: number,
    close: number,
    depth: number,
    isKey: boolean,
  ): void {
    if (depth === 3) {
      if (isKey) {
        this.#inText =
          equalsAscii(bytes, open + 1, close, "delta") ||
          equalsAscii(bytes, open + 1, close, "message");
        this.#keyIsFinish = equalsAscii(bytes, open + 1, close, "finish_reason");
        if (equalsAscii(bytes, open + 1, close, "usage")) this.hasOtherUsage = true;
      } else if (this.#keyIsFinish && close > open + 1) {
        this.finishes++;
        const reason = bytes.toString("latin1", open + 1, close);
        if (isFailureReason(reason)) this.failure = reason;
      }
    } else if (isKey) {
      this.#keyIsRole = depth === 4 && equalsAscii(bytes, open + 1, close, "role");
    } else if (this.#inText && !this.#keyIsRole) {
      this.texts++;
      this.textStart = open + 1;
      this.textEnd = close;
      this.textBytes += close - open - 1;
    }
  }

  #keyIs(bytes: Buffer, word: string): boolean {
    return equalsAscii(bytes, this.#keyStart + 1, this.#keyEnd, word);
  }
}

function isKeyBeforeSpace(bytes: Buffer, at: number, end: number): boolean {
  return isSpace(bytes[at]) && bytes[skipSpace(bytes, at, end)] === 0x3a;
}

function trimSpace(bytes: Buffer, start: number, end: number): number {
  let i = end;
  while (i > start && isSpace(bytes[i - 1])) i--;
  return i;
}
