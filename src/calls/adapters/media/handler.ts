/**
 * Handles requests for images and audio: by a vendor that speaks their form, else as a task of the
 * model.
 */
import { Dialect, MediaOperation } from "../../../../gen/uas/http/v1/http_pb.ts";
import { ModelType } from "../../../../gen/uas/inference/v1/model_pb.ts";
import type { ExchangeMediaRequest } from "../../../../gen/uas/inference/v1/media_service_pb.ts";
import type { SentReply, Sink } from "../../../core/sink.ts";
import { invalid } from "../../../core/validation.ts";
import { namedModel } from "../../../dialect/body-members.ts";
import type { MediaOperationName } from "../../../provider/vendor.ts";
import type { CallContext } from "../../pipeline/context.ts";
import { runCall } from "../../pipeline/pipeline.ts";
import { measureRecording, SpeechRequest, TranscriptionRequest } from "./audio-adapter.ts";
import type { MediaTaskModel } from "./media-tasks.ts";
import { ImagesRequest } from "./images-adapter.ts";
import type { MediaByTaskOptions, ServeByTask } from "./media-by-task.ts";
import { createSpeechByTask } from "./speech-by-task.ts";
import { createImagesByTask } from "./images-by-task.ts";
import { takesImages, takesText } from "./media-params.ts";
import { MediaAdapter, type MediaInput, type MediaRequest } from "./media-adapter.ts";
import { readUpload } from "./upload.ts";

/**
 * Handles a request.
 *
 * @param pieces the form of the request while it arrives. Default: the request body
 * @throws GatewayError for failures that were not written to the sink
 */
export type MediaHandler = (
  request: ExchangeMediaRequest,
  context: CallContext,
  sink: Sink<Buffer>,
  pieces?: AsyncIterable<Uint8Array>,
) => Promise<SentReply>;

/** Options of {@link createMediaHandler}. */
export interface MediaOptions extends MediaByTaskOptions {
  /** The folder of temporary files. */
  readonly uploadFolder: string;
}

/** Creates the handler. */
export function createMediaHandler(options: MediaOptions): MediaHandler {
  const images = createImagesByTask(options);
  const forms: TaskForms = { images, speech: createSpeechByTask(options) };
  return async (request, context, sink, arriving) => {
    const { contentType } = request;
    const call = { context, sink };
    const answer = (input: MediaInput): Promise<SentReply> => {
      const found = taskModelOf(input, options);
      if (found === undefined) return run(input, call, options);
      return forms[found.form](input, call, found.model);
    };
    if (contentType === "") return answer({ request });
    const upload = await readUpload({
      pieces: arriving ?? once(request.body),
      ownsPieces: arriving !== undefined,
      contentType,
      folder: options.uploadFolder,
    });
    try {
      return await answer({ request, upload });
    } finally {
      await upload.close();
    }
  };
}

interface Running {
  readonly context: CallContext;
  readonly sink: Sink<Buffer>;
}

async function run(input: MediaInput, { context, sink }: Running, deps: MediaOptions) {
  const read = await readerOf(input);
  const adapter = new MediaAdapter(input, read);
  return runCall(adapter, sink, { callId: deps.clock.newId(), context, deps });
}

/** Reads a request of an operation. @throws GatewayError INVALID_REQUEST */
type ReadMedia = (input: MediaInput) => MediaRequest;

/**
 * Picks the reader of an operation. Only the reader refuses the request: whether its account may
 * call comes first.
 */
async function readerOf({ request, upload }: MediaInput): Promise<ReadMedia> {
  switch (request.operation) {
    case MediaOperation.GENERATE_IMAGES:
      return (input) => new ImagesRequest(input);
    case MediaOperation.EDIT_IMAGES:
      return (input) => new ImagesRequest(input, "editImages");
    case MediaOperation.VARY_IMAGES:
      return upload === undefined ? needsForm : (input) => new ImagesRequest(input, "varyImages");
    case MediaOperation.SPEAK:
      return (input) => new SpeechRequest(input);
    case MediaOperation.TRANSCRIBE:
    case MediaOperation.TRANSLATE: {
      const isTranslation = request.operation === MediaOperation.TRANSLATE;
      const operation = isTranslation ? "translate" : "transcribe";
      if (upload === undefined) return needsForm;
      const recording = await measureRecording(upload);
      return (input) => new TranscriptionRequest(input, operation, recording);
    }
    case MediaOperation.UNSPECIFIED:
    default:
      return unknownOperation;
  }
}

function unknownOperation(): never {
  throw invalid("operation", "operation: send one of those that the contract lists");
}

function needsForm(): never {
  throw invalid(
    "content_type",
    "content_type: send a form, as multipart/form-data with its boundary",
  );
}

async function* once(body: Uint8Array): AsyncIterable<Uint8Array> {
  yield body;
}

/** The conversions between requests and tasks. */
interface TaskForms {
  readonly images: ServeByTask;
  readonly speech: ServeByTask;
}

/**
 * The model's tasks; undefined if a vendor of its speaks OpenAI's form, or the pipeline refuses the
 * request.
 */
function taskModelOf(
  { request, upload }: MediaInput,
  { catalogue, upstream, tasks }: MediaOptions,
): { readonly model: MediaTaskModel; readonly form: keyof TaskForms } | undefined {
  const rule = taskRules.get(request.operation);
  if (rule === undefined) return undefined;
  const named = upload ? upload.field("model")?.trim() : namedModel(request.body, ["model"]);
  const model = catalogue.find(named ?? "");
  if (model === undefined || model.type !== rule.type) return undefined;
  if (upstream.plan(model, Dialect.CHAT_COMPLETIONS, rule.operation).length > 0) return undefined;
  const found = tasks.find(model);
  return found && rule.isServed(found) ? { model: found, form: rule.form } : undefined;
}

/** An operation that tasks of a model can serve. */
interface TaskRule {
  readonly operation: MediaOperationName;
  readonly type: ModelType;
  readonly form: keyof TaskForms;
  /** Whether tasks of a model serve it. */
  readonly isServed: (model: MediaTaskModel) => boolean;
}

const ofImages = { type: ModelType.IMAGE, form: "images" } as const;

const taskRules: ReadonlyMap<MediaOperation, TaskRule> = new Map<MediaOperation, TaskRule>([
  [
    MediaOperation.GENERATE_IMAGES,
    { ...ofImages, operation: "generateImages", isServed: () => true },
  ],
  [MediaOperation.EDIT_IMAGES, { ...ofImages, operation: "editImages", isServed: takesImages }],
  [
    MediaOperation.SPEAK,
    { type: ModelType.AUDIO, form: "speech", operation: "speak", isServed: takesText },
  ],
]);
