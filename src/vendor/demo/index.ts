/**
 * A vendor inside the gateway, so that the first call works before any other is configured. Honest and
 * deterministic: it says that it is no AI and repeats what it was told. Models: `chat` streams at a
 * human pace, `instant` as fast as it can; `image`, `audio` and `slow` run tasks.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import { type CancelSignal, toAbortSignal } from "../../core/cancel-signal.ts";
import type { VendorConfig } from "../../config/config.ts";
import { HttpFailure } from "../../http/failure.ts";
import { createDemoTasks } from "./tasks.ts";
import { type DemoReply, DemoRequestError, replyTo } from "./text.ts";
import type { Vendor, VendorCall, VendorKind } from "../vendor.ts";
import type { VendorBody, VendorReply } from "../reply.ts";

export const demo: VendorKind = {
  dialects: [Dialect.CHAT_COMPLETIONS],
  modelTypes: [ModelType.TEXT, ModelType.IMAGE, ModelType.AUDIO],
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
    exchange: (call) => Promise.resolve(exchange(call)),
    tasks,
    close: () => tasks.close(),
  };
}

function exchange(call: VendorCall): VendorReply {
  let reply: DemoReply;
  try {
    reply = replyTo(textOf(call));
  } catch (error) {
    if (!(error instanceof DemoRequestError)) throw error;
    const body = {
      error: {
        message: error.message,
        type: "invalid_request_error",
        param: error.param,
        code: error.code,
      },
    };
    return answer(error.status, "application/json", once(body));
  }
  call.signal.onSent?.();
  const delayMs = reply.model === "chat" ? paceMs : 0;
  return reply.stream
    ? answer(200, "text/event-stream", events(reply, delayMs, call.signal))
    : answer(200, "application/json", once(reply.whole()));
}

function textOf({ body }: VendorCall): string {
  if ("open" in body) throw new TypeError("the demo vendor takes no forms");
  return Buffer.concat(body).toString("utf8");
}

async function* once(body: unknown): AsyncGenerator<Buffer, undefined> {
  yield Buffer.from(JSON.stringify(body));
}

async function* events(
  reply: DemoReply,
  delayMs: number,
  signal: CancelSignal,
): AsyncGenerator<Buffer, undefined> {
  const abort = delayMs > 0 ? toAbortSignal(signal) : undefined;
  for (const chunk of reply.chunks()) {
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

function answer(
  status: number,
  contentType: string,
  pieces: AsyncGenerator<Buffer, undefined>,
): VendorReply {
  return { status, headers: { "content-type": contentType }, body: toBody(pieces) };
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
