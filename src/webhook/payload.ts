/** Encodes the body of a webhook, once: all attempts send the same bytes. */
import { webhookBodyBytesMax, webhookErrorCharsMax } from "../core/limits.ts";
import { type Json, safeText, safeValue, writeSafe } from "./safe-json.ts";

/** The documented values of `status`. */
export const webhookStatuses = ["progress", "completed", "failed", "cancelled"] as const;

/** A status of a webhook. */
export type WebhookStatus = (typeof webhookStatuses)[number];

/** The content of a webhook. */
export interface WebhookPayload {
  /** The callbackId, else the Idempotency-Key, else the task id. */
  readonly callbackId: string;
  readonly status: WebhookStatus;
  /** 0 to 100. */
  readonly progress: number;
  readonly resultUrl: string | null;
  /** The text result; null if it would make the body too long. */
  readonly resultContent: string | null;
  /** A message for people; truncated if it is very long. */
  readonly error: string | null;
  /** A stable code. */
  readonly errorCode: string | null;
  readonly usage: WebhookUsage;
  /** Time of the event. */
  readonly time: Date;
  /** The members that `external_data` always has. */
  readonly facts: WebhookFacts;
  /**
   * Further members of `external_data`, such as the vendor's reply. Omitted if they would make the
   * body too long. None by default.
   */
  readonly extra?: { readonly [name: string]: Json | undefined };
}

/** Token usage in whole numbers; zero if it is unknown. */
export interface WebhookUsage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly totalTokens: number;
}

/** Identifies an event. */
export interface WebhookFacts {
  /** The same in every attempt: receivers detect repetitions by it. */
  readonly eventId: string;
  readonly modelKey: string;
  /** The request id of the submit. */
  readonly requestId: string;
  /** 1, 2, 3, … within the task. */
  readonly sequence: number;
  readonly taskId: string;
}

/** An encoded body. */
export interface FrozenPayload {
  /** The bytes that are signed and sent, at most `webhookBodyBytesMax`. */
  readonly bytes: Buffer;
  /**
   * Whether a text was changed, moved or omitted; `external_data.result_altered` has the same
   * value.
   */
  readonly isResultAltered: boolean;
}

/**
 * Applied in this order while a body is too long. Members that a poll of the task also returns are
 * dropped first.
 */
const shortenings: readonly ((payload: WebhookPayload) => WebhookPayload)[] = [
  (payload) => payload,
  (payload) => ({ ...payload, resultContent: null }),
  (payload) => ({ ...payload, resultContent: null, extra: {} }),
  // Only an extremely long callback id or address is still too long; some payload must be sent.
  (payload) => ({ ...payload, resultContent: null, extra: {}, resultUrl: null, error: null }),
];

/** Encodes a payload for all attempts. The same payload gives the same bytes. */
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
