/** HTTP for task adapters. Nothing is retried here. */
import type { JsonObject } from "@bufbuild/protobuf";
import type { VendorConfig } from "../config/config.ts";
import { replyBytesMax, vendorWorkMs } from "../core/limits.ts";
import { createHttpClient } from "../http/client.ts";
import { TaskRefused, VendorReplyError, type TaskFaultCode, type VendorFault } from "./task.ts";
import type { Vendor } from "./vendor.ts";

/** A request to a vendor, below its base URL. */
export interface TaskRequest {
  readonly method: "GET" | "POST" | "PUT";
  /** With a leading slash. */
  readonly path: string;
  /** Default: no body. */
  readonly json?: JsonObject;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/** A whole reply. */
export interface TaskReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** Sends requests about tasks to a vendor. */
export interface TaskHttp {
  /** @throws HttpFailure if no whole reply was received */
  send(request: TaskRequest): Promise<TaskReply>;
  close(): Promise<void>;
}

/** Options of {@link createTaskHttp}. */
export interface TaskHttpOptions {
  /** The headers that carry the credential. */
  readonly credential: Readonly<Record<string, string>>;
  /**
   * Whether the vendor answers only with the finished result, so that the text timeouts do not
   * apply.
   */
  readonly isSynchronous: boolean;
}

/** Opens separate connections to a vendor. */
export function createTaskHttp(
  config: VendorConfig,
  { credential, isSynchronous }: TaskHttpOptions,
): TaskHttp {
  const { origin, pathname } = new URL(config.baseUrl);
  const basePath = pathname.replace(/\/+$/, "");
  const { firstByteMs, ...others } = config.timeouts;
  const client = createHttpClient(
    origin,
    {
      ...others,
      // The deadline of the task ends it.
      totalMs: undefined,
      firstByteMs: isSynchronous ? Math.max(firstByteMs, vendorWorkMs) : firstByteMs,
    },
    credential,
  );
  return {
    async send({ method, path, json, headers, signal }) {
      const { body, ...head } = await client.send({
        method,
        path: `${basePath}${path}`,
        headers: {
          accept: "*/*",
          ...headers,
          ...(json && { "content-type": "application/json" }),
          // Without this header a vendor may compress its reply, which is not decoded here.
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

/** Returns the body of a reply as a JSON object; undefined for other bodies. */
export function parseJsonReply({ body }: Pick<TaskReply, "body">): JsonObject | undefined {
  try {
    const parsed: unknown = JSON.parse(body.toString("utf8"));
    const isObject = typeof parsed === "object" && parsed !== null && !Array.isArray(parsed);
    return isObject ? (parsed as JsonObject) : undefined;
  } catch {
    return undefined;
  }
}

/** Reads the refusals of a vendor. */
export interface RefusalReader {
  /** As {@link Vendor.faultOf}. */
  readonly faultOf: NonNullable<Vendor["faultOf"]>;
  /** As {@link Vendor.retryAfterOf}. Default: the `retry-after` header. */
  readonly retryAfterOf?: NonNullable<Vendor["retryAfterOf"]>;
  /** The error message for people; `undefined` if the body is not the vendor's own. */
  readonly messageOf: (body: Buffer) => string | undefined;
  /** Whether the content was rejected. */
  readonly isContent: (body: Buffer) => boolean;
  /**
   * Whether a server error ends the task, as with vendors that work only while the request is open.
   */
  readonly isSynchronous: boolean;
}

/**
 * Submits a task; returns a 2xx reply.
 *
 * @throws TaskRefused if certainly nothing runs; VendorReplyError if the reply leaves that open;
 * HttpFailure if there was no reply, with a cause that states whether anything was sent
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

/** Whether a reply has status 2xx. */
export function isOk({ status }: TaskReply): boolean {
  return status >= 200 && status < 300;
}

const outOfService =
  "The model is temporarily out of service. Try again later; if it lasts, report the request id to the operator";
const noModel = "The model is not available at its vendor now; try another model or try later";
const busy = "The model's vendor has no capacity now; try again later";

/** Classifies a reply outside 2xx to a submit: R-ERR-3, R-ERR-4 and R-TSK-10. */
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
  if (status === 400 || status === 413 || status === 415 || status === 422) {
    return refused("invalid_parameters", message);
  }
  // A server error in the vendor's own form. Where the vendor works only while the request is open,
  // the work has ended.
  if (words.isSynchronous && message !== undefined) return refused("upstream_error", undefined);
  return new VendorReplyError(status, `answered a task with status ${status}`);
}

function refused(code: TaskFaultCode, message: string | undefined): TaskRefused {
  return new TaskRefused(code, faultText(code, message));
}

const faultTexts: Readonly<Record<TaskFaultCode, string>> = {
  content_rejected: "The model's vendor rejected this content",
  invalid_parameters: "The model's vendor refused the parameters",
  invalid_request: "The model's vendor refused the request",
  upstream_error: "The model's vendor failed; try again",
};

/** Longest vendor message that is passed on, in characters. */
const messageCharsMax = 1_000;

/** The customer's text for a failure: ours, followed by the vendor's. */
export function faultText(code: TaskFaultCode, message: string | undefined): string {
  const text = faultTexts[code];
  return message === undefined || message === ""
    ? text
    : `${text}: ${message.slice(0, messageCharsMax)}`;
}

/** The fault that the operator must fix: by the vendor's error, otherwise by the status. */
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

/**
 * Classifies a reply outside 2xx about a submitted task. It says nothing about the task, but may
 * reveal a fault of the operator's account. A 404 is not about the model's name here.
 */
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

/** Media types by file extension, for vendors that state none. */
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
