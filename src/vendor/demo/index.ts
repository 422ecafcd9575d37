/**
 * A vendor inside the gateway, so that the first call works before any other is configured. Honest and
 * deterministic: it says that it is no AI and repeats what it was told. Models: `chat` streams at a
 * human pace, `instant` as fast as it can; `image`, `audio` and `slow` run tasks; `embedding`, `rerank` and
 * `moderation` do what they are named after.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { VendorConfig } from "../../config/config.ts";
import { type CancelSignal, toAbortSignal } from "../../core/cancel-signal.ts";
import type { JsonRecord } from "../../dialect/json/value.ts";
import { HttpFailure } from "../../http/failure.ts";
import { rerankDialects } from "../http-vendor.ts";
import { bodyText, jsonReply } from "../operation-form.ts";
import type { VendorBody, VendorReply } from "../reply.ts";
import type { Vendor, VendorCall, VendorKind, VendorOperation } from "../vendor.ts";
import { complete } from "./completion.ts";
import {
  editImages,
  embed,
  moderate,
  rerank,
  speak,
  transcribe,
  translate,
  varyImages,
} from "./operations.ts";
import { answered, readBody } from "./request.ts";
import { createDemoTasks } from "./tasks.ts";
import { replyTo } from "./text.ts";

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

/** Between two words of the `chat` model, in milliseconds: about 25 words a second. */
const paceMs = 40;

function create(config: VendorConfig): Vendor {
  const tasks = createDemoTasks();
  return {
    name: config.name,
    dialects: new Set(demo.dialects),
    exchange: (call) => answer(call, () => generated(call)),
    embed: operation((call) => jsonReply(embed(readBody(bodyText(call))))),
    rerank: operation((call) => jsonReply(rerank(readBody(bodyText(call)))), rerankDialects),
    moderate: operation((call) => jsonReply(moderate(readBody(bodyText(call))))),
    complete: operation(completed),
    speak: operation(speak),
    transcribe: operation(transcribe),
    translate: operation(translate),
    editImages: operation(editImages),
    varyImages: operation(varyImages),
    tasks,
    close: () => tasks.close(),
  };
}

type Answer = (call: VendorCall) => VendorReply | Promise<VendorReply>;

function operation(send: Answer, dialects: readonly Dialect[] = demo.dialects): VendorOperation {
  return { dialects: new Set(dialects), send: (call) => answer(call, () => send(call)) };
}

async function answer(
  call: VendorCall,
  send: () => VendorReply | Promise<VendorReply>,
): Promise<VendorReply> {
  const reply = await answered(send);
  if (reply.status === 200) call.signal.onSent?.();
  return reply;
}

function generated(call: VendorCall): VendorReply {
  const reply = replyTo(bodyText(call));
  const delayMs = reply.model === "chat" ? paceMs : 0;
  return reply.stream
    ? streamed(events(reply.chunks(), delayMs, call.signal))
    : jsonReply(reply.whole());
}

function completed(call: VendorCall): VendorReply {
  const { stream, whole, chunks } = complete(bodyText(call));
  return stream ? streamed(events(chunks(), 0, call.signal)) : jsonReply(whole());
}

async function* events(
  chunks: Iterable<JsonRecord>,
  delayMs: number,
  signal: CancelSignal,
): AsyncGenerator<Buffer, undefined> {
  const abort = delayMs > 0 ? toAbortSignal(signal) : undefined;
  for (const chunk of chunks) {
    if (signal.aborted) throw new HttpFailure("aborted", "aborted");
    yield Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`);
    if (abort !== undefined) {
      await sleep(delayMs, undefined, { signal: abort }).catch(() => {
        throw new HttpFailure("aborted", "aborted");
      });
    }
  }
  yield Buffer.from("data: [DONE]\n\n");
}

function streamed(pieces: AsyncGenerator<Buffer, undefined>): VendorReply {
  return { status: 200, headers: { "content-type": "text/event-stream" }, body: toBody(pieces) };
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
