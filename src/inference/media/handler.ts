/** Handles requests for images: by a vendor that speaks their form, else as a task of the model. */
import { Dialect, MediaOperation } from "../../../gen/uas/http/v1/http_pb.ts";
import type { ExchangeMediaRequest } from "../../../gen/uas/inference/v1/media_service_pb.ts";
import type { SentReply, Sink } from "../../core/sink.ts";
import { newId } from "../../core/uuid.ts";
import { invalid } from "../../core/validation.ts";
import { namedModel } from "../../dialect/body-members.ts";
import type { CallContext } from "../pipeline/context.ts";
import { runCall } from "../pipeline/pipeline.ts";
import type { ImageTaskModel } from "./image-tasks.ts";
import { ImagesAdapter } from "./images-adapter.ts";
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
    if (request.operation !== MediaOperation.GENERATE_IMAGES) {
      throw invalid("operation", "operation: send one of those that the contract lists");
    }
    const model = taskModelOf(request, options);
    if (model !== undefined) return imagesByTask(request, { context, sink }, model);
    const adapter = new ImagesAdapter(request);
    return runCall(adapter, sink, { callId: newId(), context, deps: options });
  };
}

/** The model's tasks; `undefined`: a vendor of its speaks OpenAI's form, or the pipeline refuses the request. */
function taskModelOf(
  { body }: ExchangeMediaRequest,
  { catalogue, upstream, tasks }: ImagesByTaskOptions,
): ImageTaskModel | undefined {
  const model = catalogue.find(namedModel(body, ["model"]));
  if (
    model === undefined ||
    upstream.plan(model, Dialect.CHAT_COMPLETIONS, "generateImages").length > 0
  )
    return undefined;
  return tasks.find(model);
}
