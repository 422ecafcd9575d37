/** Requests for the text of a recording in OpenAI's form, charged by measured second or token. */
import { invalid } from "../../core/validation.ts";
import {
  readRecordingText,
  TranscriptEventsRelay,
  TranscriptTextRelay,
} from "../../dialect/transcriptions.ts";
import type { VendorReply } from "../../vendor/reply.ts";
import { recordingSeconds } from "../../vendor/media-length.ts";
import type { Delivered, Metered } from "../metering.ts";
import type { PlannedRoute, ReplyStream, RequestSummary, WholeReply } from "../pipeline/adapter.ts";
import { AudioRequest, meterAudio, nothingMetered } from "./audio-request.ts";
import { flagField, requiredField } from "./images-form.ts";
import type { MediaInput } from "./media-adapter.ts";
import type { Upload } from "./upload.ts";

/** The most tokens of a second of speech, in and out: OpenAI reads 10 a second. */
const inputTokensPerSecond = 30;
const outputTokensPerSecond = 12;

/** Bytes of a second of a recording that does not tell its length: of the slowest usual speech, 24 kbit/s. */
const bytesPerSecondMin = 3_000;

/** Bytes of text of a second of the fastest speech: a recording that tells a shorter length tells too little. */
const textBytesPerSecondMax = 60;

/** A recording, measured before its request is quoted. */
export interface Recording {
  readonly upload: Upload;
  /** Its length in seconds; `undefined`: the file does not tell. */
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

  /** The recording is charged once its text is there, or the vendor has it and nobody waits any more. */
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
