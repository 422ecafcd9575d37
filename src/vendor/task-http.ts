/** What adapters of tasks share that ask their vendor over HTTP. Nothing is repeated here. */
import type { JsonObject } from "@bufbuild/protobuf";
import type { VendorConfig } from "../config/config.ts";
import { replyBytesMax, vendorWorkMs } from "../config/limits.ts";
import { createHttpClient } from "../http/client.ts";
import { type TaskFaultCode, TaskRefused, VendorReplyError } from "./task.ts";
import type { Vendor, VendorFault } from "./vendor.ts";

/** A request to a vendor, below its base address. */
export interface TaskRequest {
  readonly method: "GET" | "POST" | "PUT";
  /** With a leading slash. */
  readonly path: string;
  /** Default: no body. */
  readonly json?: JsonObject;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/** A reply, read whole. */
export interface TaskReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** Speaks to a vendor about tasks. */
export interface TaskHttp {
  /** @throws HttpFailure where no whole reply came */
  send(request: TaskRequest): Promise<TaskReply>;
  close(): Promise<void>;
}

/** What {@link createTaskHttp} needs to know of a vendor. */
export interface TaskHttpOptions {
  /** The headers that carry the credential. */
  readonly credential: Readonly<Record<string, string>>;
  /** Whether it makes the whole result before it answers: that may take longer than its timeouts are for text. */
  readonly isSynchronous: boolean;
}

/** Opens connections of their own to a vendor. */
export function createTaskHttp(
  config: VendorConfig,
  { credential, isSynchronous }: TaskHttpOptions,
): TaskHttp {
  const { origin, pathname } = new URL(config.baseUrl);
  const basePath = pathname.replace(/\/+$/, "");
  const { firstByteMs, ...others } = config.timeouts;
  const client = createHttpClient(origin, {
    ...others,
    firstByteMs: isSynchronous ? Math.max(firstByteMs, vendorWorkMs) : firstByteMs,
  });
  return {
    async send({ method, path, json, headers, signal }) {
      const { body, ...head } = await client.send({
        method,
        path: `${basePath}${path}`,
        headers: {
          accept: "*/*",
          ...headers,
          ...(json && { "content-type": "application/json" }),
          // Without it a vendor may compress, and nobody here reads that.
          "accept-encoding": "identity",
          ...credential,
        },
        body: json === undefined ? [] : [Buffer.from(JSON.stringify(json))],
        signal,
      });
      return { ...head, body: await body.whole(replyBytesMax) };
    },
    close: () => client.close(),
  };
}

/** A reply's body as an object; `undefined`: it is none. */
export function parseJsonReply({ body }: Pick<TaskReply, "body">): JsonObject | undefined {
  try {
    const parsed: unknown = JSON.parse(body.toString("utf8"));
    const isObject = typeof parsed === "object" && parsed !== null && !Array.isArray(parsed);
    return isObject ? (parsed as JsonObject) : undefined;
  } catch {
    return undefined;
  }
}

/** How a vendor refuses. */
export interface RefusalReader {
  /** See {@link Vendor.faultOf}. */
  readonly faultOf: NonNullable<Vendor["faultOf"]>;
  /** See {@link Vendor.retryAfterOf}. Default: the header `retry-after` tells. */
  readonly retryAfterOf?: NonNullable<Vendor["retryAfterOf"]>;
  /** What it says, for people; `undefined`: the body is none of the vendor's own. */
  readonly messageOf: (body: Buffer) => string | undefined;
  /** Whether it is the content that it does not want. */
  readonly isContent: (body: Buffer) => boolean;
  /** Whether a failure of its own is the end of the task, as with vendors that work while they are waited for. */
  readonly isSynchronous: boolean;
}

/**
 * Asks for a task: a reply of 2xx.
 *
 * @throws TaskRefused where the vendor said that nothing runs; VendorTrouble where its answer leaves that open;
 *   HttpFailure where none came, whose cause tells whether anything was sent
 */
export async function submitTask(
  http: TaskHttp,
  request: TaskRequest,
  words: RefusalReader,
): Promise<TaskReply> {
  const reply = await http.send(request);
  if (isOk(reply)) return reply;
  throw submitRefusal(reply, words);
}

/** Whether a reply has what was asked for. */
export function isOk({ status }: TaskReply): boolean {
  return status >= 200 && status < 300;
}

const outOfService =
  "The model is out of service for a moment; the operator has been told, try again later";
const noModel = "The model is not available at its vendor now; try another model or try later";
const busy = "The model's vendor has no capacity now; try again later";

/** What a reply outside of 2xx means: R-ERR-3, R-ERR-4 and R-TSK-10. */
function submitRefusal(reply: TaskReply, words: RefusalReader): TaskRefused | VendorReplyError {
  const { status, body } = reply;
  const message = words.messageOf(body);
  const fault = readFault(reply, words);
  if (fault !== undefined) {
    const text = fault === "model" ? noModel : outOfService;
    return new TaskRefused("upstream_error", text, true, { fault });
  }
  const isBusy = status === 429 || ((status === 503 || status === 529) && message !== undefined);
  if (isBusy) {
    const retryAfterSeconds = words.retryAfterOf?.(body) ?? headerSeconds(reply);
    const about = retryAfterSeconds === undefined ? {} : { retryAfterSeconds };
    return new TaskRefused("upstream_error", busy, true, about);
  }
  if (status < 500 && words.isContent(body)) return refused("content_rejected", message);
  if (status === 400 || status === 413 || status === 422) {
    return refused("invalid_parameters", message);
  }
  // Its own failure, told in its own words: where it works only while it is waited for, it works no more.
  if (words.isSynchronous && message !== undefined) return refused("upstream_error", undefined);
  return new VendorReplyError(status, `answered a task with status ${status}`);
}

function refused(code: TaskFaultCode, message: string | undefined): TaskRefused {
  return new TaskRefused(code, faultText(code, message));
}

const faultTexts: Readonly<Record<TaskFaultCode, string>> = {
  content_rejected: "The model's vendor does not want this content",
  invalid_parameters: "The model's vendor refused the parameters",
  upstream_error: "The model's vendor failed; try again",
};

/** The longest text of a vendor that is passed on, in characters. */
const messageCharsMax = 1_000;

/** What a customer is told of a failure: the vendor's own words are behind ours. */
export function faultText(code: TaskFaultCode, message: string | undefined): string {
  const text = faultTexts[code];
  return message === undefined || message === ""
    ? text
    : `${text}: ${message.slice(0, messageCharsMax)}`;
}

/** What the operator must act on: by the vendor's words, else by the status. */
function readFault(
  { status, body }: TaskReply,
  { faultOf }: Pick<RefusalReader, "faultOf">,
): VendorFault | undefined {
  const fault = faultOf(status, body);
  if (fault !== undefined) return fault;
  if (status === 401 || status === 403) return "credential";
  if (status === 402) return "money";
  return status === 404 || status === 405 ? "model" : undefined;
}

/** What a reply outside of 2xx says about a task that the vendor has: nothing, but maybe about the operator's
 * account. A 404 is no fault of the model's name then. */
export function readReplyError(
  reply: TaskReply,
  words: Pick<RefusalReader, "faultOf">,
): VendorReplyError {
  const { status } = reply;
  const fault = readFault(reply, words);
  const about = status === 404 || status === 405 ? undefined : fault;
  return new VendorReplyError(status, `answered about a task with status ${status}`, about);
}

function headerSeconds({ headers }: TaskReply): number | undefined {
  const text = headers["retry-after"] ?? "";
  return /^\d{1,5}$/.test(text) ? Math.max(1, Number(text)) : undefined;
}

/** Media types by the ending of a file's name, for vendors that tell none. */
export const contentTypes: Readonly<Record<string, string>> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  webp: "image/webp",
  gif: "image/gif",
  svg: "image/svg+xml",
  mp4: "video/mp4",
  webm: "video/webm",
  mp3: "audio/mpeg",
  wav: "audio/wav",
  flac: "audio/flac",
  ogg: "audio/ogg",
};
