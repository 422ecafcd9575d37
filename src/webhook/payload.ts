/** The body of a webhook: what a task has to say, as bytes that never change again. */
import { webhookBodyBytesMax, webhookErrorCharsMax } from "../config/limits.ts";
import { type Json, safeText, safeValue, writeSafe } from "./safe-json.ts";

/** The documented words of a task's state. */
export const webhookStatuses = ["progress", "completed", "failed", "cancelled"] as const;

/** One of them. */
export type WebhookStatus = (typeof webhookStatuses)[number];

/** What a webhook says. */
export interface WebhookPayload {
  /** The callbackId, else the Idempotency-Key, else the task id. */
  readonly callbackId: string;
  readonly status: WebhookStatus;
  /** 0 to 100. */
  readonly progress: number;
  readonly resultUrl: string | null;
  /** The text result; moved away (`null`) where it would make the body too long. */
  readonly resultContent: string | null;
  /** A message for people; cut where it is very long. */
  readonly error: string | null;
  /** A stable code. */
  readonly errorCode: string | null;
  readonly usage: WebhookUsage;
  /** When the event happened. */
  readonly time: Date;
  /** What `external_data` has always. */
  readonly facts: WebhookFacts;
  /** What else it has, such as the vendor's own answer. Left out where it would make the body too long.
   * Default: nothing. */
  readonly extra?: { readonly [name: string]: Json | undefined };
}

/** What was consumed; whole numbers, zero where nothing is known. */
export interface WebhookUsage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly totalTokens: number;
}

/** What tells one event from every other. */
export interface WebhookFacts {
  /** The same in every attempt: receivers recognise repetitions by it. */
  readonly eventId: string;
  readonly modelKey: string;
  /** The request id of the submit. */
  readonly requestId: string;
  /** 1, 2, 3, … within the task. */
  readonly sequence: number;
  readonly taskId: string;
}

/** A body that is final. */
export interface FrozenPayload {
  /** What is signed and sent, at most `webhookBodyBytesMax`. */
  readonly bytes: Buffer;
  /** Whether a text was changed, moved or left out; `external_data.result_altered` says so too. */
  readonly isResultAltered: boolean;
}

/** What is tried where a body is too long, one after the other: what the poll has anyway goes first. */
const shortenings: readonly ((payload: WebhookPayload) => WebhookPayload)[] = [
  (payload) => payload,
  (payload) => ({ ...payload, resultContent: null }),
  (payload) => ({ ...payload, resultContent: null, extra: {} }),
  // Only an absurd callback id or address is still too long; something must be sent.
  (payload) => ({ ...payload, resultContent: null, extra: {}, resultUrl: null, error: null }),
];

/** Writes a payload, once and for all attempts. The same payload gives the same bytes. */
export function freezePayload(payload: WebhookPayload): FrozenPayload {
  let frozen = write(payload, false);
  for (const [steps, shorten] of shortenings.entries()) {
    frozen = write(shorten(payload), steps > 0);
    if (frozen.bytes.length <= webhookBodyBytesMax) break;
  }
  return frozen;
}

function write(payload: WebhookPayload, isShortened: boolean): FrozenPayload {
  const error = payload.error?.slice(0, webhookErrorCharsMax) ?? null;
  const { value, isAltered } = safeValue({ ...payload.extra }, 2);
  const extra = value as { readonly [name: string]: Json } | null;
  const hasExtra = Object.values(payload.extra ?? {}).some((member) => member !== undefined);
  const texts = [payload.resultContent, payload.resultUrl, payload.callbackId, payload.error];
  const isResultAltered =
    isShortened ||
    error !== payload.error ||
    (hasExtra && isAltered) ||
    texts.some((text) => text !== null && safeText(text) !== text);
  const body = bodyOf({ ...payload, error }, { ...extra }, isResultAltered);
  return { bytes: writeSafe(safeValue(body).value), isResultAltered };
}

function bodyOf(
  payload: WebhookPayload,
  extra: { readonly [name: string]: Json },
  isResultAltered: boolean,
): Json {
  const { facts, usage } = payload;
  return {
    callback_id: payload.callbackId,
    error: payload.error,
    error_code: payload.errorCode,
    external_data: {
      ...extra,
      event_id: facts.eventId,
      model_key: facts.modelKey,
      request_id: facts.requestId,
      ...(isResultAltered && { result_altered: true }),
      sequence: facts.sequence,
      task_id: facts.taskId,
    },
    progress: payload.progress,
    result_content: payload.resultContent,
    result_url: payload.resultUrl,
    status: payload.status,
    timestamp: payload.time.toISOString(),
    usage: {
      completionTokens: usage.completionTokens,
      promptTokens: usage.promptTokens,
      totalTokens: usage.totalTokens,
    },
  };
}
