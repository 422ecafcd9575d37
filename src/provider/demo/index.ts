/**
 * A vendor inside the gateway, so that the first call works before any other is configured. It
 * answers every kind of call in the right form, without meaning, and says that it is no AI. Models:
 * `chat` streams at a human pace, `instant` at once; `image`, `audio` and `slow` run tasks;
 * `embedding`, `rerank` and `moderation` do what they are named after.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { VendorConfig } from "../../config/config.ts";
import { type CancelSignal, toAbortSignal } from "../../core/cancel-signal.ts";
import { HttpFailure } from "../../http/failure.ts";
import type { JsonRecord } from "../../wire/json/value.ts";
import { rerankDialects } from "../http-vendor.ts";
import { jsonReply } from "../operation-form.ts";
import type { VendorBody, VendorReply } from "../reply.ts";
import type { Vendor, VendorCall, VendorKind, VendorOperation } from "../vendor.ts";
import { speak, transcribe } from "./audio.ts";
import { redraw } from "./image.ts";
import { embed, moderate, rerank } from "./operations.ts";
import { DemoRequestError, readBody } from "./request.ts";
import { createDemoTasks } from "./tasks.ts";
import { chat, complete, type DemoReply } from "./text.ts";

export const demo: VendorKind = {
  dialects: [Dialect.CHAT_COMPLETIONS],
  modelTypes: [
    ModelType.TEXT,
    ModelType.IMAGE,
    ModelType.AUDIO,
    ModelType.EMBEDDING,
    ModelType.RERANK,
    ModelType.MODERATION,
  ],
  needsBaseUrl: false,
  needsApiKey: false,
  create,
};

function create(config: VendorConfig): Vendor {
  const tasks = createDemoTasks();
  return {
    name: config.name,
    dialects: new Set(demo.dialects),
    exchange: (call) => answer(call, (sent) => written(sent, chat)),
    complete: operation((call) => written(call, complete)),
    embed: operation((call) => jsonReply(embed(readBody(call, ["embedding"])))),
    rerank: operation((call) => jsonReply(rerank(readBody(call, ["rerank"]))), rerankDialects),
    moderate: operation((call) => jsonReply(moderate(readBody(call, ["moderation"])))),
    speak: operation(speak),
    transcribe: operation(transcribe),
    translate: operation(transcribe),
    editImages: operation(redraw),
    varyImages: operation(redraw),
    tasks,
    close: () => tasks.close(),
  };
}

type Answer = (call: VendorCall) => VendorReply | Promise<VendorReply>;

function operation(send: Answer, dialects: readonly Dialect[] = demo.dialects): VendorOperation {
  return { dialects: new Set(dialects), send: (call) => answer(call, send) };
}

/** Answers a call, or refuses it as a vendor would. */
async function answer(call: VendorCall, send: Answer): Promise<VendorReply> {
  try {
    const reply = await send(call);
    call.signal.onSent?.();
    return reply;
  } catch (error) {
    if (!(error instanceof DemoRequestError)) throw error;
    const { message, param } = error;
    return jsonReply({ error: { message, type: "invalid_request_error", param, code: null } }, 400);
  }
}

/** Time between two chunks of the `chat` model: about 25 words a second. */
const paceMs = 40;

function written(call: VendorCall, write: (body: JsonRecord) => DemoReply): VendorReply {
  const body = readBody(call, ["chat", "instant"]);
  const { whole, chunks } = write(body);
  if (body["stream"] !== true) return jsonReply(whole());
  const delayMs = body["model"] === "chat" ? paceMs : 0;
  return {
    status: 200,
    headers: { "content-type": "text/event-stream" },
    body: toBody(eventsOf(chunks(), delayMs, call.signal)),
  };
}

async function* eventsOf(
  chunks: Iterable<JsonRecord>,
  delayMs: number,
  signal: CancelSignal,
): AsyncGenerator<Buffer, undefined> {
  const abort = delayMs > 0 ? toAbortSignal(signal) : undefined;
  for (const chunk of chunks) {
    if (signal.aborted) throw new HttpFailure("aborted", "aborted");
    yield Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`);
    if (abort === undefined) continue;
    await sleep(delayMs, undefined, { signal: abort }).catch(() => {
      throw new HttpFailure("aborted", "aborted");
    });
  }
  yield Buffer.from("data: [DONE]\n\n");
}

function toBody(pieces: AsyncGenerator<Buffer, undefined>): VendorBody {
  let piece: readonly Buffer[] = [];
  return {
    async ready() {
      const { done, value } = await pieces.next();
      if (!done) piece = [value];
      return !done;
    },
    take: () => piece,
    whole: async () => Buffer.concat(await Array.fromAsync(pieces)),
    cancel: () => void pieces.return(undefined),
  };
}
