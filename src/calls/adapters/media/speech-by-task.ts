/** Requests for speech. */
import type { JsonObject } from "@bufbuild/protobuf";
import { ErrorCode, GatewayError } from "../../../core/errors.ts";
import type { Sink } from "../../../core/sink.ts";
import { speechParams } from "./media-params.ts";
import type { TaskFile } from "./media-tasks.ts";
import { MediaAdapter } from "./media-adapter.ts";
import { asBuffer } from "../../../core/bytes.ts";
import { invalid } from "../../../core/validation.ts";
import { SpeechRequest } from "./audio-adapter.ts";
import {
  type MediaByTaskOptions,
  type ServeByTask,
  createMediaByTask,
  type MediaResult,
  type AcceptedMedia,
  sendWhole,
  sendEvents,
} from "./media-by-task.ts";

/** Creates the handler of requests for speech. */
export function createSpeechByTask(options: MediaByTaskOptions): ServeByTask {
  return createMediaByTask<SpeechRequest, AskedSpeech>(options, {
    what: "audio is",
    adapter: (input) => new MediaAdapter(input, (given) => new SpeechRequest(given)),
    async read({ request }, _read, model) {
      const members = JSON.parse(asBuffer(request.body).toString("utf8")) as JsonObject;
      const isStreamed = readStreamFormat(members["stream_format"]);
      return { ...speechParams(members, model), asked: { isStreamed } };
    },
    reply: (accepted, sink) =>
      (accepted.asked.isStreamed ? streamSpeech : sendSpeech)(accepted, sink),
  });
}

/** Properties of the request that shape the reply. */
interface AskedSpeech {
  /** Whether the audio comes as events. */
  readonly isStreamed: boolean;
}

function readStreamFormat(format: unknown): boolean {
  if (format === undefined || format === null || format === "audio") return false;
  if (format === "sse") return true;
  throw invalid("stream_format", '"stream_format" must be "audio" or "sse"');
}

/** The file with the speech. A model may add others, such as the times of words. */
function audioOf({ files }: MediaResult): TaskFile {
  const audio = files.find(({ contentType }) => contentType.startsWith("audio/")) ?? files[0];
  if (audio !== undefined) return audio;
  throw new GatewayError(ErrorCode.UPSTREAM_ERROR, "The model's vendor sent no audio; try again");
}

async function sendSpeech(accepted: AcceptedMedia<AskedSpeech>, sink: Sink<Buffer>): Promise<void> {
  const ended = await accepted.result();
  const audio = audioOf(ended);
  sendWhole(accepted, sink, { body: await audio.read(), type: audio.contentType, ended });
}

/** Sends all audio as one event, and the end as another one. */
function streamSpeech(accepted: AcceptedMedia<AskedSpeech>, sink: Sink<Buffer>): Promise<void> {
  return sendEvents(accepted, sink, async function* (ended) {
    const bytes = await audioOf(ended).read();
    yield { type: "speech.audio.delta", audio: bytes.toString("base64") };
    const { inputTokens, outputTokens } = ended;
    const total = { total_tokens: inputTokens + outputTokens };
    const usage = { input_tokens: inputTokens, output_tokens: outputTokens, ...total };
    yield { type: "speech.audio.done", usage };
  });
}
