/**
 * Generates the text of a TEXT task with one vendor. It uses the codecs and refusals of text
 * generation, but has neither a hold nor a call record: the end of the task settles the task's hold
 * and writes the record.
 */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { StopReason, type GenerateEvent } from "../../../gen/uas/inference/v1/generate_pb.ts";
import { type Usage, UsageSource } from "../../../gen/uas/type/v1/usage_pb.ts";
import type { UnitUsage } from "../../billing/prices/cost.ts";
import type { ModelConfig } from "../../config/config.ts";
import { detachedReplyMs, webhookBodyBytesMax } from "../../core/limits.ts";
import { rareQuantitiesOf } from "../../config/price-units.ts";
import { CancelSource } from "../../core/cancel-signal.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { UnreadableReplyError } from "../../wire/json/value.ts";
import { EventTooLongError } from "../../wire/sse/event-stream.ts";
import { HttpFailure } from "../../http/failure.ts";
import {
  TaskStopped,
  TaskRefused,
  type ReportedCost,
  type TaskOutcome,
  type TaskTokens,
  type TaskFaultCode,
} from "../../provider/task.ts";
import { upstreamRequestId } from "./headers.ts";
import { meter, type Metered, withinRequest } from "../pipeline/metering.ts";
import { chargeablePart, isPlausible, plausibleFacts } from "../pipeline/plausible.ts";
import { estimateTokens } from "../../tokens/estimate.ts";
import type { Chunk, ReadRequest, ReplyStream } from "../pipeline/adapter.ts";
import type { PlannedRoute } from "../../routing/planned-route.ts";
import type { PreparedCall } from "../../routing/prepared-call.ts";
import { readCompleteBody } from "../pipeline/reply.ts";
import {
  boundOf,
  cautiousTokens,
  measureRequest,
  storedBound,
} from "../../tokens/request-tokens.ts";
import type { RequestAmount } from "../../routing/attempt-plan.ts";
import { toVendorError } from "./translation.ts";
import type { OpenReply } from "../../routing/attempt.ts";
import type { AttemptRequest, Upstream } from "../../routing/upstream.ts";

/** The request of one exchange. */
interface TextExchange<Out extends Chunk> {
  /** Must ask for a stream: otherwise a proxy may take the long silence for a dead connection. */
  readonly request: ReadRequest<Out>;
  readonly model: ModelConfig;
  readonly planned: PlannedRoute;
  /** Cancels the exchange. */
  readonly signal: AbortSignal;
  /**
   * Stops the vendor at once. After a cancel the reply is read on until then, as after a disconnect
   * (R-MON-11). Default: `signal`, nothing is read on.
   */
  readonly lastSignal?: AbortSignal | undefined;
  /** Called with each piece until the cancel, in order. An exception ends the exchange. */
  readonly take: (out: Out) => void;
}

/** The result of an exchange. */
export interface GeneratedText {
  readonly metered: Metered;
  /** The vendor's id of the exchange; empty if it sent none. */
  readonly upstreamId: string;
  /** Request members that the vendor's style could not carry. */
  readonly dropped: readonly string[];
}

/**
 * Sends the request once and reads the reply. Only the signal limits the time, because a long text
 * is not a hanging vendor.
 *
 * @throws TaskRefused if nothing runs at the vendor, or its reply was invalid; HttpFailure if it is
 * unknown whether anything runs: its cause says whether the request was sent
 */
export async function exchangeText<Out extends Chunk>(
  upstream: Upstream,
  exchange: TextExchange<Out>,
): Promise<GeneratedText> {
  const { request, model, planned, signal } = exchange;
  let prepared: PreparedCall | undefined;
  let open: OpenReply;
  const progress: Progress = {};
  using vendor = new VendorStop(exchange, progress);
  try {
    const asked = (prepared = request.prepare(model, planned));
    const call = {
      dialect: planned.dialect ?? Dialect.UNSPECIFIED,
      model: planned.route.model,
      query: planned.dialect === request.dialect ? request.query : "",
      headers: asked.headers,
      body: asked.body,
      stream: true,
      isPatient: true,
      signal: vendor,
    };
    // The task decides about further attempts.
    open = await askOnce(upstream, planned, { call, amount: amountOf(request, asked) });
  } catch (error) {
    if (signal.aborted && prepared !== undefined && wasSent(error)) {
      throw new TaskStopped(costSoFar(progress, { ...exchange, prepared }), error);
    }
    throw openFailure(error);
  }
  try {
    const generated = await read(open, prepared, { ...exchange, progress });
    const { usage } = generated.metered;
    upstream.reportUsage(planned.route, usage);
    if (signal.aborted) throw new TaskStopped(textUsage(generated.metered), undefined);
    open.usedTokens = usage && usage.inputTokens + usage.outputTokens;
    return generated;
  } catch (error) {
    if (error instanceof TaskStopped) throw error;
    throw signal.aborted
      ? new TaskStopped(costSoFar(progress, { ...exchange, prepared }), error)
      : streamFailure(error);
  } finally {
    open.close();
  }
}

const onlyOnce = { attempts: 1, withinMs: 0 };

/**
 * Sends a request to one route, once. @throws GatewayError if the vendor gave no answer for the
 * caller
 */
async function askOnce(
  upstream: Upstream,
  planned: PlannedRoute,
  { call, amount }: { readonly call: AttemptRequest; readonly amount: RequestAmount },
): Promise<OpenReply> {
  const stages = [{ routes: [planned], retry: onlyOnce }];
  const attempts = upstream.attempts({ stages, amount, isRepeatable: false });
  const destination = attempts.next();
  if (destination === undefined) throw attempts.error;
  const attempt = await upstream.reserve(destination, amount);
  if (attempt.error !== undefined) throw attempt.error;
  const answer = await upstream.send(attempt, call, undefined);
  if (answer.error !== undefined) throw answer.error;
  answer.succeeded();
  return answer;
}

/** The stream so far, for the cost of a stopped exchange. */
interface Progress {
  stream?: Pick<
    ReplyStream<Chunk>,
    "usage" | "textBytes" | "uncountedTextBytes" | "textPieces" | "units"
  >;
}

/** Stops the vendor of an exchange: at once, or some time after the cancel. */
class VendorStop extends CancelSource implements Disposable {
  readonly #exchange: Pick<TextExchange<Chunk>, "planned" | "signal" | "lastSignal">;
  readonly #progress: Progress;
  #isSent = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    exchange: Pick<TextExchange<Chunk>, "planned" | "signal" | "lastSignal">,
    progress: Progress,
  ) {
    super();
    this.#exchange = exchange;
    this.#progress = progress;
    const { signal, lastSignal } = exchange;
    signal.addEventListener("abort", this.#onCancel);
    lastSignal?.addEventListener("abort", this.#onEnd);
    if (lastSignal?.aborted) this.#onEnd();
    if (signal.aborted) this.#onCancel();
  }

  onSent(): void {
    this.#isSent = true;
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    const { signal, lastSignal } = this.#exchange;
    signal.removeEventListener("abort", this.#onCancel);
    lastSignal?.removeEventListener("abort", this.#onEnd);
  }

  readonly #onEnd = (): void => this.cancel();

  readonly #onCancel = (): void => {
    const { planned, lastSignal } = this.#exchange;
    const { detachedReadMs: readMs } = planned;
    const hasContent = (this.#progress.stream?.textBytes ?? 0) > 0;
    const isReadOn = readMs === Number.POSITIVE_INFINITY || (readMs > 0 && hasContent);
    if (lastSignal === undefined || !this.#isSent || !isReadOn) return this.cancel();
    this.#timer = setTimeout(this.#onEnd, Math.min(readMs, detachedReplyMs)).unref();
  };
}

/** Whether the vendor may have had the whole request, and did not refuse it. */
function wasSent(error: unknown): boolean {
  const failure = error instanceof GatewayError ? error.cause : error;
  return failure instanceof HttpFailure && failure.isSent;
}

/**
 * The cost of a stopped exchange, as for a disconnected client (R-MON-11): the input and the
 * received text.
 */
function costSoFar<Out extends Chunk>(
  { stream }: Progress,
  { prepared, request, model, planned, lastSignal }: Asked<Out>,
): ReportedCost {
  // Without `lastSignal` the vendor was stopped at once, so low estimates are accepted.
  const isCautious = lastSignal !== undefined && planned.detachedReadMs > 0;
  const { maxOutputTokens: maxTokens = model.maxOutputTokens } = request.text;
  const metered = meter({
    reported: stream?.usage,
    inputTokens: stream?.usage === undefined ? estimateInput(prepared, isCautious) : 0,
    textBytes: stream?.textBytes ?? 0,
    uncountedTextBytes: stream?.uncountedTextBytes ?? 0,
    stopped: { isCautious, pieces: stream?.textPieces ?? 0, maxTokens },
    isComplete: false,
    isInputOwed: true,
  });
  const textBytes = stream?.textBytes ?? 0;
  const asked = { prepared, request, model, planned };
  return textUsage(chargedPart(metered, asked, { textBytes, units: stream?.units }));
}

/** An exchange whose request was sent. */
interface Asked<Out extends Chunk> extends Omit<TextExchange<Out>, "take" | "signal"> {
  readonly prepared: PreparedCall;
}

async function read<Out extends Chunk>(
  open: OpenReply,
  prepared: PreparedCall,
  {
    request,
    model,
    planned,
    signal,
    progress,
    ...exchange
  }: TextExchange<Out> & { progress: Progress },
): Promise<GeneratedText> {
  const { reply, refusal } = open;
  const take = (out: Out): void => {
    if (!signal.aborted) exchange.take(out);
  };
  if (refusal !== undefined) {
    throw toTaskRefused(toVendorError({ ...refusal, status: reply.status }, planned.dialect));
  }
  request.plausible = (usage, text) => {
    const reported = { usage, source: UsageSource.UPSTREAM, isCharged: true };
    const { implausible, usage: part = usage } = chargedPart(
      reported,
      { prepared, request, model, planned },
      { textBytes: text.textBytes, units: text.units },
    );
    return implausible === undefined ? usage : part;
  };
  const whole = await readCompleteBody(reply, request);
  const stream = whole === undefined ? request.stream(planned, reply) : undefined;
  const answer = whole === undefined ? undefined : request.whole(whole, planned, reply);
  if (answer !== undefined) take(answer.body);
  if (stream !== undefined) {
    progress.stream = stream;
    while (!stream.isCutShort && (await reply.body.ready())) {
      const out = stream.push(reply.body.take());
      if (out.length > 0) take(out);
      if (stream.failed) throw new UnreadableReplyError("an error in the stream");
    }
    const last = stream.end();
    if (last.length > 0) take(last);
    if (!stream.finished) throw new HttpFailure("reset", "the stream was cut");
  }
  const { usage: reported, estimated: told, textBytes = 0, units } = answer ?? stream ?? {};
  const isCounted = reported !== undefined || told !== undefined;
  const metered = meter({
    reported,
    told,
    // An estimate costs a scan, so it is made only if no figure exists.
    inputTokens: isCounted ? 0 : estimateInput(prepared),
    textBytes,
    uncountedTextBytes: stream?.uncountedTextBytes ?? 0,
    units,
    isComplete: true,
  });
  return {
    metered: chargedPart(metered, { prepared, request, model, planned }, { textBytes, units }),
    upstreamId: upstreamRequestId(reply.headers),
    dropped: prepared.dropped,
  };
}

/**
 * Returns the chargeable part of a usage: within the limits of the request, and plausible for its
 * text (R-MON-15).
 */
function chargedPart<Out extends Chunk>(
  metered: Metered,
  { prepared, request, model, planned: { route } }: Pick<Asked<Out>, AskedMember>,
  { textBytes, units }: { readonly textBytes: number; readonly units: UnitUsage | undefined },
): Metered {
  if (metered.usage === undefined) return metered;
  const { features } = prepared;
  const usage = withinRequest(metered.usage, units, features);
  const { maxOutputTokens: maxTokens } = model;
  const inputTokens = inputBound(prepared, request);
  const call = { request, model, route, features, inputTokens, maxTokens, textBytes };
  const facts = plausibleFacts(call);
  if (isPlausible(usage, facts)) return { ...metered, usage };
  // A task has one hold, and is charged that at most.
  const part = chargeablePart(usage, { ...facts, isLimited: true });
  return { ...metered, usage: part, implausible: usage };
}

type AskedMember = "prepared" | "request" | "model" | "planned";

/** An upper bound of the request's input. */
function inputBound<Out extends Chunk>(
  { body }: PreparedCall,
  { text }: Pick<ReadRequest<Out>, "text">,
): number {
  return boundOf(measureRequest(Buffer.concat(body))) + storedBound(text);
}

/** @param isCautious whether the estimate is rather too high than too low. Default false */
function estimateInput({ body }: PreparedCall, isCautious = false): number {
  const bytes = Buffer.concat(body);
  const size = measureRequest(bytes);
  const typical = estimateTokens(bytes.length - size.mediaBytes) + size.mediaTokens;
  return isCautious ? Math.max(typical, cautiousTokens(size)) : typical;
}

function amountOf({ text }: ReadRequest<Chunk>, prepared: PreparedCall): RequestAmount {
  const tokens = estimateInput(prepared) + (text.maxOutputTokens ?? 0);
  return { typical: tokens, most: tokens };
}

/** Collects the text of a reply from its events, and why it ended. */
export class TextReply {
  /** The vendor's id of the reply; empty if it sent none. */
  id = "";
  #stopReason: StopReason = StopReason.UNSPECIFIED;
  #stopDetail = "";
  /** The texts by the index of their part, in order. */
  readonly #texts = new Map<number, string>();

  /** Adds events. @throws TaskRefused if the vendor failed */
  add(events: readonly GenerateEvent[]): void {
    for (const { kind } of events) {
      if (kind.case === "start") this.id = kind.value.id;
      else if (kind.case === "partStart") {
        const part = kind.value.part?.kind;
        const isAnswer = part?.case === "text" || part?.case === "refusal";
        if (isAnswer) this.#texts.set(kind.value.index, part.value.text);
      } else if (kind.case === "partDelta") {
        const { index, delta } = kind.value;
        const text = this.#texts.get(index);
        if (text !== undefined && delta.case === "text") this.#texts.set(index, text + delta.value);
      } else if (kind.case === "end") {
        this.#stopReason = kind.value.stopReason;
        this.#stopDetail = kind.value.stopDetail;
      } else if (kind.case === "error") {
        const { message } = kind.value;
        throw new TaskRefused("upstream_error", message || "The model's vendor failed");
      }
    }
  }

  /** The text of the reply. @throws TaskRefused if it is empty */
  text(): string {
    const text = [...this.#texts.values()].join("").toWellFormed();
    if (text !== "") return text;
    const reason = this.#stopReason;
    const isFiltered = reason === StopReason.CONTENT_FILTER || reason === StopReason.REFUSAL;
    if (!isFiltered) {
      throw new TaskRefused("upstream_error", "The model's reply has no text; try again");
    }
    const detail = this.#stopDetail === "" ? "" : `: ${this.#stopDetail}`;
    const message = `The model's vendor rejected this content${detail}`;
    throw new TaskRefused("content_rejected", message);
  }
}

/**
 * A text that takes more than half of a webhook's size limit is also stored as a file, whose URL
 * always fits.
 */
export function textFiles(text: string): TaskOutcome["files"] {
  const isShort = Buffer.byteLength(JSON.stringify(text)) <= webhookBodyBytesMax / 2;
  return isShort ? [] : [{ bytes: Buffer.from(text), contentType: "text/plain" }];
}

/** Returns the consumption in the form of tasks. */
export function textUsage({
  usage,
  source,
  isCharged,
  implausible,
}: Metered): Pick<TaskOutcome, "usage" | "implausibleUsage" | "isFree"> {
  if (usage === undefined) return {};
  const isEstimated = source === UsageSource.ESTIMATED;
  return {
    usage: taskTokens(usage, isEstimated),
    ...(implausible && { implausibleUsage: taskTokens(implausible, isEstimated) }),
    ...(!isCharged && { isFree: true }),
  };
}

function taskTokens(usage: Usage, isEstimated: boolean): TaskTokens {
  const { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens, reasoningTokens } = usage;
  const tokens = { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens };
  return { ...tokens, reasoningTokens, isEstimated, ...rareQuantitiesOf(usage) };
}

/** The codes with which vendors reject content. */
const contentCodes = new Set([
  "content_filter",
  "content_policy_violation",
  "moderation_blocked",
  "invalid_prompt",
]);

/** Converts a vendor's refusal of the request as invalid. */
function toTaskRefused({ message, details }: GatewayError): TaskRefused {
  const isContent = contentCodes.has(String(details["upstream_code"] ?? ""));
  return new TaskRefused(isContent ? "content_rejected" : "invalid_parameters", message);
}

const codes: ReadonlyMap<ErrorCode, TaskFaultCode> = new Map([
  [ErrorCode.INVALID_REQUEST, "invalid_parameters"],
  [ErrorCode.REQUEST_TOO_LARGE, "invalid_parameters"],
]);

/** Temporary errors: the vendor has not accepted the request and may accept it later. */
const temporary: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  ErrorCode.RATE_LIMIT_EXCEEDED,
  ErrorCode.UPSTREAM_OVERLOADED,
  ErrorCode.SERVICE_UNAVAILABLE,
]);

/**
 * A vendor's own failures. Another vendor may be tried, as for calls. The same vendor is not tried
 * again: it charges for its work so far, and would charge a second time.
 */
const vendorFailures: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  ErrorCode.UPSTREAM_ERROR,
  ErrorCode.UPSTREAM_TIMEOUT,
]);

/**
 * Converts the failure of an exchange without a reply: the request was invalid, or the vendor did
 * not accept it.
 */
export function openFailure(error: unknown): unknown {
  if (!(error instanceof GatewayError)) return error;
  const { code, message, cause, retryAfterSeconds } = error;
  if (cause instanceof HttpFailure) return cause;
  return new TaskRefused(codes.get(code) ?? "upstream_error", message, temporary.has(code), {
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    canRetryElsewhere: vendorFailures.has(code),
  });
}

/** Converts the failure of a reply that had begun: no vendor is tried again. */
function streamFailure(error: unknown): unknown {
  if (error instanceof HttpFailure && error.kind !== "aborted") {
    return new TaskRefused("upstream_error", "The model's vendor broke off its reply; try again");
  }
  if (error instanceof UnreadableReplyError || error instanceof EventTooLongError) {
    return new TaskRefused("upstream_error", "The model's vendor sent an invalid reply; try again");
  }
  if (!(error instanceof GatewayError)) return error;
  const { code, message } = error;
  return new TaskRefused(codes.get(code) ?? "upstream_error", message);
}
