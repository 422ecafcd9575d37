/**
 * Requests for speech, and for the text of a recording, in OpenAI's form: charged by character,
 * second or token.
 */
import { create } from "@bufbuild/protobuf";
import { ModelType } from "../../../../gen/uas/inference/v1/model_pb.ts";
import { type Usage, UsageSchema, UsageSource } from "../../../../gen/uas/type/v1/usage_pb.ts";
import type { UnitUsage } from "../../../billing/prices/cost.ts";
import type { PriceConfig } from "../../../config/config.ts";
import { joinBuffers } from "../../../core/bytes.ts";
import { invalid } from "../../../core/validation.ts";
import { UnreadableReplyError } from "../../../wire/json/value.ts";
import {
  BytesRelay,
  readRecordingText,
  readSpeechBody,
  type SpeechBody,
  SpeechEventsRelay,
  TranscriptEventsRelay,
  TranscriptTextRelay,
} from "../../../dialect/operations/audio.ts";
import {
  type AudioFormat,
  audioSeconds,
  recordingSeconds,
} from "../../../provider/media/length.ts";
import { bytesPerSecondMin } from "../../../provider/media/source.ts";
import { speechSecondsMax, speechSecondsTypical } from "../../../provider/task-params.ts";
import type { VendorReply } from "../../../provider/reply.ts";
import { type Delivered, type Metered, nothingMetered } from "../../pipeline/metering.ts";
import type { ReplyStream, RequestSummary, WholeReply } from "../../pipeline/adapter.ts";
import type { PlannedRoute } from "../../../routing/planned-route.ts";
import { flagField, requiredField } from "./images-form.ts";
import { type MediaInput, MediaRequest } from "./media-adapter.ts";
import type { Upload } from "./upload.ts";

/** A request with audio on one side: anything but JSON is passed on as it comes. */
abstract class AudioRequest extends MediaRequest {
  protected readonly modelType = ModelType.AUDIO;

  override isStreamed({ headers }: VendorReply): boolean {
    return !(headers["content-type"] ?? "").includes("json");
  }
}

/** Output tokens of a second of speech: OpenAI's models make 1,250 a minute. */
const tokensPerSecond = 21;

/** A request for speech that has been read. */
export class SpeechRequest extends AudioRequest {
  override readonly operation = "speak";
  readonly text: RequestSummary;
  readonly body: SpeechBody;

  /** @throws GatewayError INVALID_REQUEST */
  constructor(input: MediaInput) {
    super(input);
    this.body = readSpeechBody(input.request.body);
    const { model, bytes, characters, speed } = this.body;
    const seconds = speechSecondsMax(characters, speed);
    this.text = {
      model,
      stream: true,
      maxOutputTokens: seconds * tokensPerSecond,
      choices: 1,
      bytes: bytes.length,
      units: { characters, seconds },
    };
  }

  whole(): WholeReply<Buffer> {
    throw new UnreadableReplyError("JSON instead of audio");
  }

  stream(
    _planned: PlannedRoute,
    { headers }: VendorReply,
    price?: PriceConfig,
  ): ReplyStream<Buffer> {
    const { characters, format } = this.body;
    if ((headers["content-type"] ?? "").startsWith("text/event-stream")) {
      return new SpeechEvents(characters);
    }
    if (price?.second === undefined) return new SpeechAudio(characters, undefined);
    // Without a format in the request, it is the vendor that chooses.
    const isWav = /^audio\/(?:x-)?wav/.test(headers["content-type"] ?? "");
    return new SpeechAudio(characters, isWav ? "wav" : (format as AudioFormat));
  }

  /** The text is charged once it was sent; seconds and tokens as far as there is audio. */
  override meter(delivered: Delivered): Metered {
    const { units, inputTokens = 0, isInputOwed } = delivered;
    if (units === undefined && isInputOwed !== true) return nothingMetered;
    const { characters, speed } = this.body;
    const typical = units === undefined ? 0 : speechSecondsTypical(characters, speed);
    const seconds = units?.seconds ?? typical;
    return meterAudio(delivered, {
      seconds,
      isMeasured: units?.seconds !== undefined,
      tokens: { inputTokens, outputTokens: Math.ceil(seconds * tokensPerSecond) },
      units: { characters },
    });
  }
}

/** Longer audio is not kept for its length, which is then estimated. */
const measuredBytesMax = 32 * 1024 * 1024;

/** Audio, kept for its length if a second has a price. */
class SpeechAudio extends BytesRelay {
  readonly #characters: number;
  readonly #format: AudioFormat | undefined;
  #kept: Buffer[] = [];

  /** @param format undefined if the length does not matter */
  constructor(characters: number, format: AudioFormat | undefined) {
    super();
    this.#characters = characters;
    this.#format = format;
  }

  override push(pieces: readonly Buffer[]): Buffer {
    const piece = super.push(pieces);
    if (this.#format !== undefined && this.bytes <= measuredBytesMax) this.#kept.push(piece);
    return piece;
  }

  get units(): UnitUsage | undefined {
    if (this.bytes === 0) return undefined;
    const seconds = this.#seconds();
    return { characters: this.#characters, ...(seconds !== undefined && { seconds }) };
  }

  #seconds(): number | undefined {
    if (this.#format === undefined || this.bytes > measuredBytesMax) return undefined;
    return audioSeconds(joinBuffers(this.#kept), this.#format);
  }
}

class SpeechEvents extends SpeechEventsRelay {
  readonly #characters: number;

  constructor(characters: number) {
    super();
    this.#characters = characters;
  }

  override get units(): UnitUsage | undefined {
    return this.bytes === 0 ? undefined : { characters: this.#characters };
  }
}

/** The most tokens of a second of speech, in and out: OpenAI reads 10 a second. */
const inputTokensPerSecond = 30;
const outputTokensPerSecond = 12;

/**
 * Bytes of text per second of the fastest speech. A recording that states a shorter length is
 * wrong.
 */
const textBytesPerSecondMax = 60;

/** A recording, measured before its request is quoted. */
interface Recording {
  readonly upload: Upload;
  /** Length in seconds. Undefined if the file does not state it. */
  readonly seconds: number | undefined;
}

/** Measures the recording of a request. Never rejects. */
export async function measureRecording(upload: Upload): Promise<Recording> {
  const file = upload.files.find(({ name }) => name === "file");
  const measured = file && recordingSeconds(file.readAt, file.bytes);
  return { upload, seconds: await measured?.catch(() => undefined) };
}

/** A request for the text of a recording that has been read. */
export class TranscriptionRequest extends AudioRequest {
  override readonly operation: "transcribe" | "translate";
  readonly text: RequestSummary;
  readonly body: { readonly model: string };
  readonly #seconds: number;
  readonly #isMeasured: boolean;

  /** @throws GatewayError INVALID_REQUEST, naming the field at fault */
  constructor(
    input: MediaInput,
    operation: TranscriptionRequest["operation"],
    { upload, seconds }: Recording,
  ) {
    super(input);
    this.operation = operation;
    const { bytes } = recordingOf(upload);
    this.#isMeasured = seconds !== undefined;
    this.#seconds = seconds ?? Math.ceil(bytes / bytesPerSecondMin);
    const model = requiredField(upload, "model");
    this.body = { model };
    this.text = {
      model,
      stream: flagField(upload, "stream"),
      maxOutputTokens: Math.ceil(this.#seconds * outputTokensPerSecond) + 64,
      choices: 1,
      bytes: Math.ceil(this.#seconds * inputTokensPerSecond) + upload.fieldBytes,
      units: { seconds: this.#seconds },
    };
  }

  whole(body: Buffer): WholeReply<Buffer> {
    const { usage, seconds, textBytes } = readRecordingText(body);
    return { body, usage, textBytes, units: seconds === undefined ? undefined : { seconds } };
  }

  stream(_planned: PlannedRoute, { headers }: VendorReply): ReplyStream<Buffer> {
    const isEvents = (headers["content-type"] ?? "").startsWith("text/event-stream");
    return isEvents ? new TranscriptEventsRelay() : new TranscriptTextRelay();
  }

  /**
   * A recording is charged once its text has arrived, or once the vendor has it and the client
   * disconnected.
   */
  override meter(delivered: Delivered): Metered {
    const { units, isComplete, isInputOwed = false, textBytes, inputTokens = 0 } = delivered;
    if (!isComplete && textBytes === 0 && !isInputOwed) return nothingMetered;
    const told = units?.seconds;
    return meterAudio(delivered, {
      seconds: told ?? Math.max(this.#seconds, textBytes / textBytesPerSecondMax),
      isMeasured: told !== undefined || this.#isMeasured,
      tokens: { inputTokens, outputTokens: Math.ceil(textBytes / 4) },
    });
  }
}

/** The one recording of a request. @throws GatewayError INVALID_REQUEST */
function recordingOf({ files }: Upload): { readonly bytes: number } {
  const [file, second] = files;
  if (file?.name !== "file") {
    throw invalid("file", '"file" is missing: send the recording as a file of that name');
  }
  if (second !== undefined) throw invalid(second.name, "The form has two files; send one");
  if (file.bytes === 0) throw invalid("file", '"file" is empty');
  return file;
}

/** The delivered audio, in its billable units. */
interface DeliveredAudio {
  /** Its length; charged if a second has a price. */
  readonly seconds: number;
  /** Whether the length is a measured one. */
  readonly isMeasured: boolean;
  /** The tokens that count if the vendor reports none and tokens have a price. */
  readonly tokens: Pick<Usage, "inputTokens" | "outputTokens">;
  /** Further units. */
  readonly units?: UnitUsage;
}

/** Charges audio by what its price names. */
function meterAudio({ reported, price }: Delivered, audio: DeliveredAudio): Metered {
  const hasTokens = price?.input !== undefined || price?.output !== undefined;
  const isTimed = price?.second !== undefined;
  const isEstimated = (hasTokens && reported === undefined) || (isTimed && !audio.isMeasured);
  const timed = isTimed ? { seconds: audio.seconds } : undefined;
  return {
    usage: reported ?? create(UsageSchema, hasTokens ? audio.tokens : {}),
    source: isEstimated ? UsageSource.ESTIMATED : UsageSource.UPSTREAM,
    units: audio.units ? { ...audio.units, ...timed } : timed,
    isCharged: true,
  };
}
