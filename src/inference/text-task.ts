/**
 * Texts that nobody waits for: what a TEXT task asks of a vendor, and what comes of it. As a call it goes through
 * the routes, codecs and refusals of text generation, but it holds nothing and has no record of its own: the
 * task's end settles the task's hold, and writes the record.
 */
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { type Generation, type Reply, StopReason } from "../../gen/uas/inference/v1/generate_pb.ts";
import { UsageSource } from "../../gen/uas/type/v1/usage_pb.ts";
import type { ModelConfig, RouteConfig } from "../config/config.ts";
import { webhookBodyBytesMax } from "../config/limits.ts";
import { chatCompletions } from "../dialect/chat-completions/dialect.ts";
import { UnreadableReplyError } from "../dialect/codec.ts";
import { ErrorCode, GatewayError } from "../errors.ts";
import { HttpFailure } from "../http/failure.ts";
import {
  type Submitted,
  type TaskFaultCode,
  type TaskOutcome,
  TaskRefused,
  type TaskTokens,
} from "../vendor/task.ts";
import { vendorFault } from "./crossing.ts";
import type { PlannedRoute, PreparedCall } from "./door.ts";
import { upstreamRequestId } from "./headers.ts";
import { estimateTokens, type Metered, meter } from "./metering.ts";
import { readAnswer } from "./read-answer.ts";
import { measureRequest } from "./tokens/request-size.ts";
import { TypedDoor } from "./typed-door.ts";
import type { OpenReply, Upstream } from "./upstream.ts";

/** A text to make. */
export interface TextAsk {
  readonly model: ModelConfig;
  /** The one that is asked: whether another one may be is for the task to say. */
  readonly route: RouteConfig;
  /** As the schema has accepted them, in canonical names. */
  readonly params: JsonObject;
  /** Ends the generation. */
  readonly signal: AbortSignal;
}

/**
 * Makes a text; nothing is repeated.
 *
 * @throws TaskRefused where nothing runs at the vendor; HttpFailure where that is not known, whose cause tells
 *   whether anything was sent
 */
export type TextRunner = (ask: TextAsk) => Promise<Submitted>;

/** Makes one. */
export function createTextRunner(upstream: Upstream): TextRunner {
  return async ({ model, route, params, signal }) => {
    const door = new TypedDoor(textGeneration(params, model.key));
    const [planned] = upstream.plan({ ...model, routes: [route] }, undefined);
    if (planned?.dialect === undefined) {
      throw new TaskRefused("upstream_error", `vendor ${route.vendor} makes no text`, true);
    }
    const { dialect } = planned;
    try {
      const prepared = door.prepare(model, planned);
      const { headers, body } = prepared;
      const call = { dialect, model: route.model, query: "", headers, body, stream: false, signal };
      const routes = [planned];
      const open = await upstream.open({ routes, callFor: () => call, onAttempt: () => {} });
      try {
        return await take(open, { door, planned, prepared });
      } finally {
        open.close();
      }
    } catch (error) {
      throw toldOf(error);
    }
  };
}

/**
 * What the parameters ask for.
 *
 * @throws GatewayError INVALID_REQUEST where a part of a message is none, by the names of chat completions
 */
export function textGeneration(params: JsonObject, model: string): Generation {
  const { maxTokens, topP, responseFormat, seed, temperature, stop } = params;
  const body: Record<string, JsonValue | undefined> = {
    model,
    messages: messagesOf(params),
    temperature,
    stop,
    max_completion_tokens: maxTokens,
    top_p: topP,
    response_format: responseFormat,
    // -1 is any, as for pictures.
    seed: typeof seed === "number" && seed >= 0 ? seed : undefined,
  };
  const bytes = Buffer.from(JSON.stringify(body));
  return chatCompletions.decodeRequest(bytes, { platformAliases: false });
}

/** The system's words, the conversation, and the prompt with its pictures as the last words of the user. */
function messagesOf({
  systemPrompt,
  messages,
  prompt,
  imageUrls,
}: JsonObject): readonly JsonValue[] & JsonValue[] {
  const pictures = Array.isArray(imageUrls) ? imageUrls : [];
  const parts: JsonValue[] = [
    ...(prompt === undefined ? [] : [{ type: "text", text: prompt }]),
    ...pictures.map((url) => ({ type: "image_url", image_url: { url } })),
  ];
  const content = pictures.length === 0 && prompt !== undefined ? prompt : parts;
  return [
    ...(systemPrompt === undefined ? [] : [{ role: "system", content: systemPrompt }]),
    ...(Array.isArray(messages) ? messages : []),
    ...(parts.length === 0 ? [] : [{ role: "user", content }]),
  ];
}

interface Asked {
  readonly door: TypedDoor;
  readonly planned: PlannedRoute;
  readonly prepared: PreparedCall;
}

async function take({ reply, refusal }: OpenReply, asked: Asked): Promise<Submitted> {
  const { door, planned, prepared } = asked;
  if (refusal !== undefined) {
    throw refused(vendorFault({ ...refusal, status: reply.status }, planned.dialect));
  }
  const body = await readAnswer(reply);
  if (body === undefined) throw new UnreadableReplyError("a stream, not asked for");
  const { usage: reported, textBytes } = door.whole(body, planned);
  const made = door.reply;
  if (made === undefined) throw new UnreadableReplyError("no reply");
  const metered = meter({
    reported,
    // Counted only where it is charged by.
    inputTokens: reported === undefined ? estimateInput(prepared) : 0,
    textBytes,
    isWhole: true,
  });
  const text = textOf(made);
  const vendorTaskId = upstreamRequestId(reply.headers) || made.id;
  return {
    ...(vendorTaskId !== "" && { vendorTaskId }),
    done: { text, files: fileOf(text), ...usageOf(metered) },
  };
}

/** What the model said. @throws TaskRefused where it said nothing */
function textOf({ parts, stopReason, stopDetail }: Reply): string {
  const said = parts.flatMap(({ kind }) =>
    kind.case === "text" || kind.case === "refusal" ? [kind.value.text] : [],
  );
  const text = said.join("").toWellFormed();
  if (text !== "") return text;
  const isFiltered = stopReason === StopReason.CONTENT_FILTER || stopReason === StopReason.REFUSAL;
  if (!isFiltered) throw new TaskRefused("upstream_error", "The model answered without a text");
  const detail = stopDetail === "" ? "" : `: ${stopDetail}`;
  const message = `The model's vendor does not want this content${detail}`;
  throw new TaskRefused("content_rejected", message);
}

/** A text that webhooks may be too short for is a file too: that has an address. Half is left for what else they
 * tell. */
function fileOf(text: string): TaskOutcome["files"] {
  const isShort = Buffer.byteLength(JSON.stringify(text)) <= webhookBodyBytesMax / 2;
  return isShort ? [] : [{ bytes: Buffer.from(text), contentType: "text/plain" }];
}

function usageOf({ usage, source }: Metered): { readonly usage?: TaskTokens } {
  if (usage === undefined) return {};
  const { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens, reasoningTokens } = usage;
  const isEstimated = source === UsageSource.ESTIMATED;
  const tokens = { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens };
  return { usage: { ...tokens, reasoningTokens, isEstimated } };
}

function estimateInput({ body }: PreparedCall): number {
  const bytes = Buffer.concat(body);
  const { mediaBytes, mediaTokens } = measureRequest(bytes);
  return estimateTokens(bytes.length - mediaBytes) + mediaTokens;
}

/** The vendor's codes for content that it does not want. */
const contentCodes = new Set([
  "content_filter",
  "content_policy_violation",
  "moderation_blocked",
  "invalid_prompt",
]);

function refused({ message, details }: GatewayError): TaskRefused {
  const isContent = contentCodes.has(String(details["upstream_code"] ?? ""));
  return new TaskRefused(isContent ? "content_rejected" : "invalid_parameters", message);
}

const codes: ReadonlyMap<ErrorCode, TaskFaultCode> = new Map([
  [ErrorCode.INVALID_REQUEST, "invalid_parameters"],
  [ErrorCode.REQUEST_TOO_LARGE, "invalid_parameters"],
]);

/** What can be accepted later: the vendor has taken nothing. Its own failures are the end: it has been paid for
 * what it did until then, and asked again it would be paid twice. */
const passing: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  ErrorCode.RATE_LIMIT_EXCEEDED,
  ErrorCode.UPSTREAM_OVERLOADED,
  ErrorCode.SERVICE_UNAVAILABLE,
]);

/** A failure in the words of tasks. */
function toldOf(error: unknown): unknown {
  if (error instanceof UnreadableReplyError) {
    return new TaskRefused("upstream_error", "The model's vendor answered something unusable");
  }
  if (!(error instanceof GatewayError)) return error;
  const { code, message, cause, retryAfterSeconds } = error;
  if (cause instanceof HttpFailure) return cause;
  const about = retryAfterSeconds === undefined ? {} : { retryAfterSeconds };
  return new TaskRefused(codes.get(code) ?? "upstream_error", message, passing.has(code), about);
}
