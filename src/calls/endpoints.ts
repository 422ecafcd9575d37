/** The paths that models answer: by their type, and by what the vendors of their routes offer. */
import { Dialect } from "../../gen/uas/http/v1/http_pb.ts";
import { ModelType } from "../../gen/uas/inference/v1/model_pb.ts";
import type { ModelConfig } from "../config/config.ts";
import type { OperationName } from "../provider/vendor.ts";
import type { EndpointsOf } from "./catalogue.ts";
import { takesImages, takesText } from "./adapters/media/media-params.ts";
import type { MediaTasks } from "./adapters/media/media-tasks.ts";
import type { Upstream } from "../routing/upstream.ts";

const taskPath = "/api/ai/tasks";

/** The paths of each type; with an operation, only if a vendor of the model offers it. */
const paths: ReadonlyMap<
  ModelType,
  readonly (readonly [path: string, operation?: OperationName])[]
> = new Map([
  [ModelType.TEXT, [["/v1/chat/completions"], ["/v1/responses"], ["/v1/messages"], [taskPath]]],
  [
    ModelType.IMAGE,
    [
      ["/v1/images/generations"],
      ["/v1/images/edits", "editImages"],
      ["/v1/images/variations", "varyImages"],
      [taskPath],
    ],
  ],
  [ModelType.VIDEO, [[taskPath]]],
  [
    ModelType.AUDIO,
    [
      ["/v1/audio/speech", "speak"],
      ["/v1/audio/transcriptions", "transcribe"],
      ["/v1/audio/translations", "translate"],
      [taskPath],
    ],
  ],
  [ModelType.EMBEDDING, [["/v1/embeddings"]]],
  [ModelType.RERANK, [["/v1/rerank"], ["/v2/rerank"]]],
  [ModelType.MODERATION, [["/v1/moderations"]]],
]);

/** Creates the lookup. */
export function createEndpointsOf(
  upstream: Pick<Upstream, "plan">,
  media: MediaTasks,
): EndpointsOf {
  const offers = (model: ModelConfig, operation: OperationName): boolean =>
    upstream.plan(model, Dialect.CHAT_COMPLETIONS, operation).length > 0 ||
    (operation === "editImages" && takesImages(media.find(model))) ||
    (operation === "speak" && takesText(media.find(model)));
  return (model) => {
    const isText = model.type === ModelType.TEXT;
    if (isText && upstream.plan(model, undefined).every(({ dialect }) => dialect === undefined)) {
      // Its vendors have native APIs only.
      return [];
    }
    return (paths.get(model.type) ?? [])
      .filter(([, operation]) => operation === undefined || offers(model, operation))
      .map(([path]) => path);
  };
}
