/**
 * Counts the tokens of a request: by the model's vendor, else by a public tokenizer, else by an
 * estimate.
 */
import { create } from "@bufbuild/protobuf";
import {
  type CountTokensRequest,
  type CountTokensResponse,
  CountTokensResponseSchema,
} from "../../../gen/uas/inference/v1/inference_service_pb.ts";
import { toAbortSignal } from "../../core/cancel-signal.ts";
import type { ModelConfig, VendorConfig } from "../../config/config.ts";
import { countBytesMax } from "../../core/limits.ts";
import { pricedUnits } from "../../config/price.ts";
import type { TextDialect, TokenCount } from "../../dialect/dialect.ts";
import { textDialects } from "../../dialect/index.ts";
import { type ReadModelBody, readModelBody } from "../../dialect/body-members.ts";
import type { Clock } from "../../core/clock.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { HttpFailure } from "../../http/failure.ts";
import type { Admission } from "../admission.ts";
import { checkRequest, replyHeaders, vendorHeaders } from "./headers.ts";
import { toGatewayError } from "../pipeline/failures.ts";
import { estimateTokens } from "../../tokens/estimate.ts";
import type { CallContext } from "../pipeline/context.ts";
import type { RunningCalls } from "../running-calls.ts";
import type { TokenCounter } from "../../tokens/counter.ts";
import { familyOf } from "../../tokens/family.ts";
import { countQuestion } from "../../tokens/request-tokens.ts";
import type { Upstream } from "../../routing/upstream.ts";
import type { VendorReply } from "../../provider/reply.ts";
import { textSize } from "./body-length.ts";

/**
 * Counts the tokens of a request. @throws GatewayError INVALID_REQUEST, MODEL_NOT_FOUND or
 * ACCESS_DENIED
 */
export type CountTokens = (
  request: CountTokensRequest,
  context: CallContext,
) => Promise<CountTokensResponse>;

export interface CountTokensOptions {
  readonly admission: Pick<Admission, "textModel">;
  readonly upstream: Upstream;
  readonly calls: RunningCalls;
  readonly counter: TokenCounter;
  readonly clock: Pick<Clock, "now">;
}

/** Time limit of a count by the vendor: an early estimate is worth more than a late count. */
const countMs = 5_000;

/** Size limit of a vendor's answer. */
const answerBytesMax = 64 * 1024;

/**
 * Bodies up to this length, are parsed for an estimate: that takes at most 10 ms of the event loop.
 */
const parsedBytesMax = 64 * 1024;

/** Assumed tokens of an image or a file: an image of the largest size that models see. */
const tokensPerFile = 1_600;

export function createCountTokens(options: CountTokensOptions): CountTokens {
  const { admission, upstream, calls, counter, clock } = options;
  return (request, context) =>
    calls.runFree(context.caller.accountId, async () => {
      checkRequest(request);
      const { style, tokenCount } = styleOf(request);
      const body = readModelBody(request.body, tokenCount.required);
      const model = admission.textModel(context.caller, body.model);
      if (textLength(body) > countBytesMax) return estimated(estimate(body), tokenCount);
      const countContext = { request, context, body, model, style, nowMs: clock.now() };
      const counted = await countByVendor(upstream, countContext);
      if (counted !== undefined) return counted;
      const vendorModel = model.routes[0]?.model ?? "";
      return estimated(await countLocally(counter, vendorModel, body), tokenCount);
    });
}

function styleOf({ dialect }: CountTokensRequest): { style: TextDialect; tokenCount: TokenCount } {
  const style = textDialects.get(dialect);
  if (style?.tokenCount !== undefined) return { style, tokenCount: style.tokenCount };
  const text = "dialect: send one that can count tokens: messages or responses";
  throw new GatewayError(ErrorCode.INVALID_REQUEST, text, { param: "dialect" });
}

interface CountContext {
  readonly request: CountTokensRequest;
  readonly context: CallContext;
  readonly body: ReadModelBody;
  readonly nowMs: number;
  readonly model: ModelConfig;
  readonly style: TextDialect;
}

/**
 * Asks the vendors; `undefined` if none counts in this dialect, none may be asked now, or all
 * failed.
 */
async function countByVendor(
  upstream: Upstream,
  countContext: CountContext,
): Promise<CountTokensResponse | undefined> {
  const { request, context, model } = countContext;
  const { dialect, query } = request;
  const routes = upstream.plan(model, dialect, "countTokens");
  if (routes.length === 0) return undefined;
  try {
    return await upstream.free.ask(routes, {
      operation: "countTokens",
      signal: toAbortSignal(context.signal),
      timeoutMs: countMs,
      callFor: ({ route, unknownBetas }, signal) => ({
        dialect,
        model: route.model,
        query,
        headers: checkedHeaders(countContext, unknownBetas),
        body: guardedBody(countContext, route.model),
        stream: false,
        signal,
      }),
      read: readCount,
    });
  } catch (error) {
    const isVendorFailure = error instanceof GatewayError || error instanceof HttpFailure;
    if (!isVendorFailure) throw error;
    if (context.signal.aborted) throw toGatewayError(error, context.signal);
    return undefined;
  }
}

/**
 * The checked headers for a vendor. @throws GatewayError INVALID_REQUEST, after which the count is
 * estimated
 */
function checkedHeaders(
  { request, style, model, nowMs }: CountContext,
  unknownBetas: VendorConfig["unknownBetas"],
): Record<string, string> {
  return vendorHeaders(request.headers, style, {
    unknownBetas,
    hasPrice: pricedUnits(model, nowMs),
  });
}

/**
 * The checked body for a vendor. @throws GatewayError INVALID_REQUEST, after which the count is
 * estimated
 */
function guardedBody(
  { body, model, style, nowMs }: CountContext,
  vendorModel: string,
): readonly Buffer[] {
  // Counting runs no tool, whatever the request offers.
  const options = { isVerified: false, hasPrice: pricedUnits(model, nowMs) };
  style.guard?.(body.bytes, options);
  return body.forVendor(vendorModel);
}

/** Reads a vendor's answer; `undefined` if it has no count. */
async function readCount(
  reply: VendorReply,
  refusal: Buffer | undefined,
): Promise<CountTokensResponse | undefined> {
  const { status } = reply;
  const body = refusal ?? (await reply.body.whole(answerBytesMax));
  const inputTokens = refusal === undefined ? countOf(body) : 0;
  if (inputTokens === undefined) return undefined;
  const head = { status, headers: replyHeaders(reply.headers, body.length) };
  return create(CountTokensResponseSchema, { inputTokens, head, body });
}

function countOf(body: Buffer): number | undefined {
  try {
    const { input_tokens: count } = JSON.parse(body.toString("utf8")) as { input_tokens?: unknown };
    const isCount = Number.isInteger(count) && Number(count) >= 1 && Number(count) < 2 ** 31;
    return isCount ? Number(count) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Counts the text exactly where the model's tokenizer is public, else estimates it by its length.
 * Media are always estimated.
 */
async function countLocally(
  counter: TokenCounter,
  model: string,
  body: ReadModelBody,
): Promise<number> {
  const encoding = familyOf(model)?.encoding;
  if (encoding !== undefined) {
    const { question, media } = countQuestion(encoding, body.bytes, undefined, body.size);
    const tokens = await counter.count(question);
    if (tokens !== undefined) return tokens + media.typical;
  }
  return estimate(body);
}

/**
 * Estimates by length. Only short bodies are parsed for it: others count with their JSON, since a
 * parse would stop the event loop for seconds. A free count must not delay other calls (R-LIM-2).
 */
function estimate(body: ReadModelBody): number {
  const isShort = body.bytes.length <= parsedBytesMax;
  const { textBytes, files } = isShort
    ? textSize(body.bytes)
    : { textBytes: textLength(body), files: body.size.media.length };
  return Math.max(1, estimateTokens(textBytes) + files * tokensPerFile);
}

/** Returns the bytes of a body without its media. */
function textLength({ bytes, size }: ReadModelBody): number {
  return size.media.reduce((rest, { start, end }) => rest - (end - start), bytes.length);
}

function estimated(inputTokens: number, tokenCount: TokenCount): CountTokensResponse {
  const body = Buffer.from(JSON.stringify(tokenCount.body(inputTokens)));
  const headers = { "content-type": "application/json", "content-length": String(body.length) };
  const head = { status: 200, headers };
  return create(CountTokensResponseSchema, { inputTokens, isEstimate: true, head, body });
}
