/**
 * One question to one vendor for a text that nobody waits for. As a call it goes through the codecs and refusals
 * of text generation, but it holds nothing and has no record of its own: the task's end settles the task's hold,
 * and writes the record.
 */
import { Dialect } from "../../gen/uas/http/v1/http_pb.ts";
import { StopReason, type GenerateEvent } from "../../gen/uas/inference/v1/generate_pb.ts";
import { UsageSource } from "../../gen/uas/type/v1/usage_pb.ts";
import type { ModelConfig } from "../config/config.ts";
import { webhookBodyBytesMax } from "../config/limits.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { UnreadableReplyError } from "../dialect/codec.ts";
import { EventTooLongError } from "../dialect/sse/event-stream.ts";
import { HttpFailure } from "../http/failure.ts";
import {
  TaskStopped,
  TaskRefused,
  type ReportedCost,
  type TaskOutcome,
  type TaskTokens,
  type TaskFaultCode,
} from "../vendor/task.ts";
import { upstreamRequestId } from "./headers.ts";
import { estimateTokens, meter, type Metered } from "./metering.ts";
import type {
  Chunk,
  PlannedRoute,
  PreparedCall,
  ReadRequest,
  ReplyStream,
} from "./pipeline/adapter.ts";
import { readAnswer } from "./pipeline/deliver.ts";
import { measureRequest } from "./tokens/request-size.ts";
import { vendorFault } from "./translation.ts";
import { askInOrder, type OpenReply, type Upstream } from "./upstream.ts";

/** What to ask. */
interface TextExchange<Out extends Chunk> {
  /** It asks for a stream: so nothing between the vendor and here takes a long silence for a dead connection. */
  readonly request: ReadRequest<Out>;
  readonly model: ModelConfig;
  readonly planned: PlannedRoute;
  readonly signal: AbortSignal;
  /** Takes what comes, in order. What it throws ends the exchange. */
  readonly take: (out: Out) => void;
}

/** What came of it. */
export interface MadeText {
  readonly metered: Metered;
  /** The vendor's own id of the exchange; empty: it told none. */
  readonly upstreamId: string;
  /** What the vendor's style could not carry of the request. */
  readonly dropped: readonly string[];
}

/**
 * Asks, once, and for as long as the signal lets: a long text is no vendor that hangs.
 *
 * @throws TaskRefused where nothing runs at the vendor, or its reply was none; HttpFailure where it is not known
 *   whether anything runs, whose cause tells whether anything was sent
 */
export async function exchangeText<Out extends Chunk>(
  upstream: Upstream,
  asked: TextExchange<Out>,
): Promise<MadeText> {
  const { request, model, planned, signal } = asked;
  let prepared: PreparedCall;
  let open: OpenReply;
  try {
    prepared = request.prepare(model, planned);
    const call = {
      dialect: planned.dialect ?? Dialect.UNSPECIFIED,
      model: planned.route.model,
      query: planned.dialect === request.dialect ? request.query : "",
      headers: prepared.headers,
      body: prepared.body,
      stream: true,
      isPatient: true,
      signal,
    };
    open = await askInOrder(upstream, [planned], { callFor: () => call });
  } catch (error) {
    throw unopenedText(error);
  }
  const progress: Progress = {};
  try {
    return await read(open, prepared, { ...asked, progress });
  } catch (error) {
    throw signal.aborted ? new TaskStopped(takenBy(progress, prepared), error) : brokenText(error);
  } finally {
    open.close();
  }
}

/** How far a stream is. */
interface Progress {
  stream?: Pick<ReplyStream<Chunk>, "usage" | "textBytes">;
}

/** As for a client that leaves (R-MON-8): the input and what came, and nothing where nothing did. */
function takenBy({ stream }: Progress, prepared: PreparedCall): ReportedCost | undefined {
  const metered = meter({
    reported: stream?.usage,
    inputTokens: stream?.usage === undefined ? estimateInput(prepared) : 0,
    textBytes: stream?.textBytes ?? 0,
    isWhole: false,
  });
  return metered.isCharged ? textUsage(metered) : undefined;
}

async function read<Out extends Chunk>(
  { reply, refusal }: OpenReply,
  prepared: PreparedCall,
  { request, planned, take, progress }: TextExchange<Out> & { readonly progress: Progress },
): Promise<MadeText> {
  if (refusal !== undefined) {
    throw refusedText(vendorFault({ ...refusal, status: reply.status }, planned.dialect));
  }
  const whole = await readAnswer(reply);
  const stream = whole === undefined ? request.stream(planned, reply) : undefined;
  const answer = whole === undefined ? undefined : request.whole(whole, planned, reply);
  if (answer !== undefined) take(answer.body);
  if (stream !== undefined) {
    progress.stream = stream;
    while (await reply.body.ready()) {
      const out = stream.push(reply.body.take());
      if (out.length > 0) take(out);
      if (stream.failed) throw new UnreadableReplyError("an error in the stream");
    }
    const last = stream.end();
    if (last.length > 0) take(last);
    if (!stream.finished) throw new HttpFailure("reset", "the stream was cut");
  }
  const { usage: reported, textBytes = 0 } = answer ?? stream ?? {};
  const metered = meter({
    reported,
    // Counted only where it is charged by.
    inputTokens: reported === undefined ? estimateInput(prepared) : 0,
    textBytes,
    isWhole: true,
  });
  return { metered, upstreamId: upstreamRequestId(reply.headers), dropped: prepared.dropped };
}

function estimateInput({ body }: PreparedCall): number {
  const bytes = Buffer.concat(body);
  const { mediaBytes, mediaTokens } = measureRequest(bytes);
  return estimateTokens(bytes.length - mediaBytes) + mediaTokens;
}

/* What a text task takes of a reply: its text, why it ended, and what it is charged by. */

/** Gathers a reply from its events. */
export class TextReply {
  /** The vendor's id of the reply; empty: it told none. */
  id = "";
  #stopReason: StopReason = StopReason.UNSPECIFIED;
  #stopDetail = "";
  /** What was said, by the number of the part, in the order of their beginnings. */
  readonly #said = new Map<number, string>();

  /** Takes the next events. @throws TaskRefused where the vendor failed */
  add(events: readonly GenerateEvent[]): void {
    for (const { kind } of events) {
      if (kind.case === "start") this.id = kind.value.id;
      else if (kind.case === "partStart") {
        const part = kind.value.part?.kind;
        const isSaid = part?.case === "text" || part?.case === "refusal";
        if (isSaid) this.#said.set(kind.value.index, part.value.text);
      } else if (kind.case === "partDelta") {
        const { index, delta } = kind.value;
        const said = this.#said.get(index);
        if (said !== undefined && delta.case === "text") this.#said.set(index, said + delta.value);
      } else if (kind.case === "end") {
        this.#stopReason = kind.value.stopReason;
        this.#stopDetail = kind.value.stopDetail;
      } else if (kind.case === "error") {
        const { message } = kind.value;
        throw new TaskRefused("upstream_error", message || "The model's vendor failed");
      }
    }
  }

  /** What the model said. @throws TaskRefused where it said nothing */
  text(): string {
    const text = [...this.#said.values()].join("").toWellFormed();
    if (text !== "") return text;
    const reason = this.#stopReason;
    const isFiltered = reason === StopReason.CONTENT_FILTER || reason === StopReason.REFUSAL;
    if (!isFiltered) {
      throw new TaskRefused("upstream_error", "The model answered without a text");
    }
    const detail = this.#stopDetail === "" ? "" : `: ${this.#stopDetail}`;
    const message = `The model's vendor does not want this content${detail}`;
    throw new TaskRefused("content_rejected", message);
  }
}

/** A text that webhooks may be too short for is a file too: that has an address. Half is left for what else they
 * tell. */
export function textFiles(text: string): TaskOutcome["files"] {
  const isShort = Buffer.byteLength(JSON.stringify(text)) <= webhookBodyBytesMax / 2;
  return isShort ? [] : [{ bytes: Buffer.from(text), contentType: "text/plain" }];
}

/** What was consumed, as tasks tell it. */
export function textUsage({ usage, source }: Metered): { readonly usage?: TaskTokens } {
  if (usage === undefined) return {};
  const { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens, reasoningTokens } = usage;
  const isEstimated = source === UsageSource.ESTIMATED;
  const tokens = { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens };
  const lasting = usage.cacheWrite1hTokens;
  return {
    usage: {
      ...tokens,
      reasoningTokens,
      isEstimated,
      ...(lasting > 0 && { cacheWrite1hTokens: lasting }),
    },
  };
}

/* How the making of a text failed, in the words of tasks. */

/** The vendor's codes for content that it does not want. */
const contentCodes = new Set([
  "content_filter",
  "content_policy_violation",
  "moderation_blocked",
  "invalid_prompt",
]);

/** A vendor's refusal of the request as invalid. */
function refusedText({ message, details }: GatewayError): TaskRefused {
  const isContent = contentCodes.has(String(details["upstream_code"] ?? ""));
  return new TaskRefused(isContent ? "content_rejected" : "invalid_parameters", message);
}

const codes: ReadonlyMap<ErrorCode, TaskFaultCode> = new Map([
  [ErrorCode.INVALID_REQUEST, "invalid_parameters"],
  [ErrorCode.REQUEST_TOO_LARGE, "invalid_parameters"],
]);

/** What can be accepted later: the vendor has taken nothing. */
const passing: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  ErrorCode.RATE_LIMIT_EXCEEDED,
  ErrorCode.UPSTREAM_OVERLOADED,
  ErrorCode.SERVICE_UNAVAILABLE,
]);

/** A vendor's own failures. Another one may be asked, as for calls; the same one not again: what it did until
 * then is paid for, and would be a second time. */
const failed: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  ErrorCode.UPSTREAM_ERROR,
  ErrorCode.UPSTREAM_TIMEOUT,
]);

/** Why there is no reply: the request could not be made, or the vendor did not take it. */
export function unopenedText(error: unknown): unknown {
  if (!(error instanceof GatewayError)) return error;
  const { code, message, cause, retryAfterSeconds } = error;
  if (cause instanceof HttpFailure) return cause;
  return new TaskRefused(codes.get(code) ?? "upstream_error", message, passing.has(code), {
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    canRetryElsewhere: failed.has(code),
  });
}

/** Why a reply that had begun is none: nobody is asked again. */
function brokenText(error: unknown): unknown {
  if (error instanceof HttpFailure && error.kind !== "aborted") {
    return new TaskRefused("upstream_error", "The model's vendor broke off its reply");
  }
  if (error instanceof UnreadableReplyError || error instanceof EventTooLongError) {
    return new TaskRefused("upstream_error", "The model's vendor answered something unusable");
  }
  if (!(error instanceof GatewayError)) return error;
  const { code, message } = error;
  return new TaskRefused(codes.get(code) ?? "upstream_error", message);
}
