/** Handles requests for images and audio: by a vendor that speaks their form, else as a task of the model. */
import { Dialect, MediaOperation } from "../../../gen/uas/http/v1/http_pb.ts";
import type { ExchangeMediaRequest } from "../../../gen/uas/inference/v1/media_service_pb.ts";
import type { SentReply, Sink } from "../../core/sink.ts";
import { newId } from "../../core/uuid.ts";
import { invalid } from "../../core/validation.ts";
import { namedModel } from "../../dialect/body-members.ts";
import type { CallContext } from "../pipeline/context.ts";
import { runCall } from "../pipeline/pipeline.ts";
import type { ImageTaskModel } from "./image-tasks.ts";
import { ImagesRequest } from "./images-adapter.ts";
import { MediaAdapter, type MediaRequest } from "./media-adapter.ts";
import { SpeechRequest } from "./speech-adapter.ts";
import { createImagesByTask, type ImagesByTaskOptions } from "./images-by-task.ts";

/** Handles a request. @throws GatewayError for failures that were not written to the sink */
export type MediaHandler = (
  request: ExchangeMediaRequest,
  context: CallContext,
  sink: Sink<Buffer>,
) => Promise<SentReply>;

/** Creates the handler. */
export function createMediaHandler(options: ImagesByTaskOptions): MediaHandler {
  const imagesByTask = createImagesByTask(options);
  return async (request, context, sink) => {
    const read = readers.get(request.operation);
    if (read === undefined) {
      throw invalid("operation", "operation: send one of those that the contract lists");
    }
    const model = taskModelOf(request, options);
    if (model !== undefined) return imagesByTask(request, { context, sink }, model);
    const adapter = new MediaAdapter(request, read);
    return runCall(adapter, sink, { callId: newId(), context, deps: options });
  };
}

/** Reads the requests of each operation. @throws GatewayError INVALID_REQUEST */
const readers: ReadonlyMap<MediaOperation, (request: ExchangeMediaRequest) => MediaRequest> =
  new Map([
    [MediaOperation.GENERATE_IMAGES, (request): MediaRequest => new ImagesRequest(request)],
    [MediaOperation.SPEAK, (request): MediaRequest => new SpeechRequest(request)],
  ]);

/** The model's tasks; `undefined`: a vendor of its speaks OpenAI's form, or the pipeline refuses the request. */
function taskModelOf(
  { operation, body }: ExchangeMediaRequest,
  { catalogue, upstream, tasks }: ImagesByTaskOptions,
): ImageTaskModel | undefined {
  if (operation !== MediaOperation.GENERATE_IMAGES) return undefined;
  const model = catalogue.find(namedModel(body, ["model"]));
  if (
    model === undefined ||
    upstream.plan(model, Dialect.CHAT_COMPLETIONS, "generateImages").length > 0
  )
    return undefined;
  return tasks.find(model);
}
