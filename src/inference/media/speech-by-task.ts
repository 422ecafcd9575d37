/** Requests for speech in OpenAI's form, as tasks of models whose vendors do not speak it. */
import type { JsonObject } from "@bufbuild/protobuf";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { asBuffer } from "../../core/bytes.ts";
import { formatUsd } from "../../core/money.ts";
import type { Sink } from "../../core/sink.ts";
import { invalid } from "../../core/validation.ts";
import { mediaErrorEvent, mediaEvent } from "../../dialect/media-events.ts";
import { replyHeaders } from "../headers.ts";
import { toGatewayError } from "../pipeline/failures.ts";
import { SpeechRequest } from "./audio-adapter.ts";
import { usageOf } from "./images-by-task.ts";
import { MediaAdapter } from "./media-adapter.ts";
import {
  type AcceptedMedia,
  createMediaByTask,
  type MediaByTaskOptions,
  type MediaResult,
  type ServeByTask,
} from "./media-by-task.ts";
import { speechParams } from "./media-params.ts";
import type { TaskFile } from "./media-tasks.ts";

/** Creates the handler. */
export function createSpeechByTask(options: MediaByTaskOptions): ServeByTask {
  return createMediaByTask<SpeechRequest, AskedSpeech>(options, {
    what: "audio is",
    adapter: (input) => new MediaAdapter(input, (given) => new SpeechRequest(given)),
    async read({ request }, _read, model) {
      const members = JSON.parse(asBuffer(request.body).toString("utf8")) as JsonObject;
      const isStreamed = readStreamFormat(members["stream_format"]);
      return { ...speechParams(members, model), asked: { isStreamed } };
    },
    reply: (accepted, sink) => (accepted.asked.isStreamed ? stream : whole)(accepted, sink),
  });
}

/** What the reply depends on. */
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

async function whole(accepted: AcceptedMedia<AskedSpeech>, sink: Sink<Buffer>): Promise<void> {
  const ended = await accepted.result();
  const audio = audioOf(ended);
  const body = await audio.read();
  const headers = {
    "content-type": audio.contentType,
    ...replyHeaders({}, body.length),
    ...accepted.headers,
    ...(accepted.reportCost && { "x-uas-cost": formatUsd(ended.costNanos) }),
  };
  sink.whole({ status: 200, headers }, body);
}

/** Sends all audio as one event, and the end as another one. */
async function stream(accepted: AcceptedMedia<AskedSpeech>, sink: Sink<Buffer>): Promise<void> {
  const type = { "content-type": "text/event-stream; charset=utf-8" };
  const headers = { ...type, ...replyHeaders({}, undefined), ...accepted.headers };
  sink.head({ status: 200, headers });
  try {
    const ended = await accepted.result();
    const bytes = await audioOf(ended).read();
    const audio = bytes.toString("base64");
    await sink.chunk(mediaEvent({ type: "speech.audio.delta", ...{ audio } }));
    await sink.chunk(mediaEvent({ type: "speech.audio.done", ...usageOf(ended) }));
  } catch (error) {
    await sink.chunk(mediaErrorEvent(toGatewayError(error, accepted.context.signal)));
  }
}
