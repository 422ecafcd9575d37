/** How many tokens a request has: as the model's vendor counts, else as the gateway counts or estimates. */
import { create } from "@bufbuild/protobuf";
import {
  type CountTokensRequest,
  type CountTokensResponse,
  CountTokensResponseSchema,
} from "../../gen/uas/inference/v1/inference_service_pb.ts";
import { toAbortSignal } from "../core/cancel-signal.ts";
import type { ModelConfig } from "../config/config.ts";
import { pricedUnits } from "../config/price.ts";
import type { TextDialect, TokenCount } from "../dialect/dialect.ts";
import { textDialects } from "../dialect/index.ts";
import { type ModelBody, readModelBody } from "../dialect/body-members.ts";
import { textSize } from "../dialect/text-size.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { HttpFailure } from "../http/failure.ts";
import type { Catalogue } from "./catalogue.ts";
import { checkRequest, forwarded, replyHeaders } from "./headers.ts";
import { estimateTokens } from "./metering.ts";
import { admitTextModel } from "./pipeline/admit.ts";
import type { CallContext } from "./pipeline/context.ts";
import type { RunningCalls } from "./running-calls.ts";
import type { TokenCounter } from "./tokens/counter.ts";
import { familyOf } from "./tokens/family.ts";
import { countQuestion } from "./tokens/request-tokens.ts";
import { askInOrder, type OpenReply, type Upstream } from "./upstream.ts";

/** Counts. @throws GatewayError INVALID_REQUEST, MODEL_NOT_FOUND or ACCESS_DENIED */
export type CountTokens = (
  request: CountTokensRequest,
  context: CallContext,
) => Promise<CountTokensResponse>;

export interface CountTokensOptions {
  readonly catalogue: Catalogue;
  readonly upstream: Upstream;
  readonly calls: RunningCalls;
  readonly counter: TokenCounter;
}

/** How long a vendor may take to count, in milliseconds: an estimate at once is worth more than a count
 * that comes late. */
const countMs = 10_000;

/** The longest count in bytes. */
const countBytesMax = 64 * 1024;

/** What a picture or a file is taken for, in tokens: a picture as large as models see them. */
const fileTokens = 1_600;

export function createCountTokens(options: CountTokensOptions): CountTokens {
  const { catalogue, upstream, calls, counter } = options;
  return async (request, context) => {
    calls.enter();
    try {
      checkRequest(request);
      const { style, tokenCount } = styleOf(request);
      const body = readModelBody(request.body, tokenCount.required);
      const model = admitTextModel(catalogue, context.caller, body.model);
      const headers = forwarded(request.headers, style.forwardedHeaders);
      const counting = { request, context, body, model, headers };
      const counted = await countByVendor(upstream, counting);
      if (counted !== undefined) return counted;
      const vendorModel = model.routes[0]?.model ?? "";
      return estimated(await countHere(counter, vendorModel, body.bytes), tokenCount);
    } finally {
      calls.leave();
    }
  };
}

function styleOf({ dialect }: CountTokensRequest): { style: TextDialect; tokenCount: TokenCount } {
  const style = textDialects.get(dialect);
  if (style?.tokenCount !== undefined) return { style, tokenCount: style.tokenCount };
  const text = "dialect: name one that has a way to ask for a count: messages or responses";
  throw new GatewayError(ErrorCode.INVALID_REQUEST, text, { param: "dialect" });
}

interface Counting {
  readonly request: CountTokensRequest;
  readonly context: CallContext;
  readonly body: ModelBody;
  readonly model: ModelConfig;
  readonly headers: Readonly<Record<string, string>>;
}

/** `undefined` where no vendor counts in this dialect, or none that does is well. */
async function countByVendor(
  upstream: Upstream,
  counting: Counting,
): Promise<CountTokensResponse | undefined> {
  const { request, context, model, headers } = counting;
  const { dialect, query } = request;
  const routes = upstream.plan(model, dialect, "countTokens");
  if (routes.length === 0) return undefined;
  const signal = AbortSignal.any([toAbortSignal(context.signal), AbortSignal.timeout(countMs)]);
  let open: OpenReply | undefined;
  try {
    open = await askInOrder(upstream, routes, {
      operation: "countTokens",
      callFor: ({ route }) => ({
        dialect,
        model: route.model,
        query,
        headers,
        body: guarded(counting, route.model),
        stream: false,
        signal,
      }),
    });
    return await readCount(open);
  } catch (error) {
    const isVendors = error instanceof GatewayError || error instanceof HttpFailure;
    if (!isVendors || context.signal.aborted) throw error;
    return undefined;
  } finally {
    open?.close();
  }
}

/** The vendor's body. What it may not be asked is estimated.  @throws GatewayError INVALID_REQUEST */
function guarded({ request, body, model }: Counting, vendorModel: string): readonly Buffer[] {
  const options = { isVerified: false, hasPrice: pricedUnits(model) };
  textDialects.get(request.dialect)?.guard?.(body.bytes, options);
  return body.forVendor(vendorModel);
}

/** `undefined` where the vendor told no count. */
async function readCount({ reply, refusal }: OpenReply): Promise<CountTokensResponse | undefined> {
  const { status } = reply;
  const body = refusal?.body ?? (await reply.body.whole(countBytesMax));
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

/** Exactly where the model's tokenizer is public, its pictures aside; else by the length of its text. */
async function countHere(counter: TokenCounter, model: string, body: Buffer): Promise<number> {
  const encoding = familyOf(model)?.encoding;
  if (encoding !== undefined) {
    const { question, media } = countQuestion(encoding, body);
    const tokens = await counter.count(question);
    if (tokens !== undefined) return tokens + media.usual;
  }
  const { textBytes, files } = textSize(body);
  return Math.max(1, estimateTokens(textBytes) + files * fileTokens);
}

function estimated(inputTokens: number, tokenCount: TokenCount): CountTokensResponse {
  const body = Buffer.from(JSON.stringify(tokenCount.body(inputTokens)));
  const headers = { "content-type": "application/json", "content-length": String(body.length) };
  const head = { status: 200, headers };
  return create(CountTokensResponseSchema, { inputTokens, isEstimate: true, head, body });
}
