/**
 * Bounds the charge for a vendor's figure (R-MON-15). A defective vendor may report any number; a
 * prepaid customer must not pay for it.
 */
import type { Logger } from "pino";
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import type { ModelConfig, RouteConfig } from "../../config/config.ts";
import { bytesPerToken, longestInputTokens } from "../../core/limits.ts";
import { formatUsd } from "../../core/money.ts";
import { type BilledFeatures, toolCallMembers } from "../../dialect/features/billed-features.ts";
import type { Metrics } from "../../observe/metrics.ts";
import type { Chunk, ReadRequest, RequestSummary } from "./adapter.ts";

/** Facts about a call besides its vendor's figures. */
export interface PlausibleFacts {
  /** Input tokens of the hold: an upper bound of the request's text. */
  readonly inputTokens: number;
  /** Output tokens that the request allows, or that its model can generate if it names no limit. */
  readonly maxTokens: number;
  /**
   * Whether the request names an output limit, or its maximum is fixed in another way, as for
   * images.
   */
  readonly isLimited: boolean;
  /** Reasoning that the vendor may count outside the limit: the model's maximum, if it reasons. */
  readonly reasoningTokens: number;
  /**
   * Input that the vendor may add: for stored conversations, files by reference, and tools that it
   * runs.
   */
  readonly addedInputTokens: number;
  /** Bytes of text that were delivered: no token is shorter. */
  readonly textBytes: number;
}

/** A call whose figures are compared with its request. */
interface ComparedCall extends Pick<PlausibleFacts, "inputTokens" | "maxTokens" | "textBytes"> {
  readonly request: Pick<ReadRequest<Chunk>, "text" | "refersToStored">;
  readonly model: Pick<ModelConfig, "isReasoning" | "maxOutputTokens">;
  /** The route that answered; undefined if unknown. */
  readonly route: Pick<RouteConfig, "maxContext"> | undefined;
  readonly features: BilledFeatures | undefined;
}

/**
 * Gathers the facts of a call. @param call `maxTokens`: what counts if the request has no output
 * limit
 */
export function plausibleFacts(call: ComparedCall): PlausibleFacts {
  const { request, inputTokens, model, route, features, textBytes } = call;
  const limitTokens = limitTokensOf(request);
  const contextTokens = route?.maxContext ?? longestInputTokens;
  return {
    inputTokens,
    maxTokens: limitTokens ?? call.maxTokens,
    isLimited: limitTokens !== undefined,
    reasoningTokens: model.isReasoning === true ? model.maxOutputTokens : 0,
    addedInputTokens: vendorInputTokens(features, request.refersToStored, contextTokens),
    textBytes,
  };
}

/** Returns the output limit of a request for all choices together; undefined without a limit. */
export function limitTokensOf({ text }: { readonly text: RequestSummary }): number | undefined {
  return text.maxOutputTokens === undefined ? undefined : text.maxOutputTokens * text.choices;
}

/** Input tokens that vendors add to any request: templates, and descriptions of tools. */
const templateTokens = 8_192;

/** Factor by which a request without a limit may exceed its expected cost. */
const unlimitedFactor = 2;

/**
 * Estimates input that a vendor may add. A stored conversation or file may have any length up to
 * the model's context, and each call of a vendor's tool reads all of it again.
 */
export function vendorInputTokens(
  features: BilledFeatures | undefined,
  refersToStored: boolean,
  contextTokens: number,
): number {
  const calls = toolCallMembers.reduce((sum, member) => sum + (features?.[member] ?? 0), 0);
  return calls > 0 ? contextTokens * (1 + calls) : refersToStored ? contextTokens : 0;
}

/** Whether a usage can be what the request and the delivered text have. */
export function isPlausible(usage: Usage, facts: PlausibleFacts): boolean {
  const { inputTokens, maxTokens, isLimited, reasoningTokens, addedInputTokens, textBytes } = facts;
  const inputMax = unlimitedFactor * inputTokens + templateTokens + addedInputTokens;
  const factor = isLimited ? 1 : unlimitedFactor;
  const outputMax = factor * Math.max(maxTokens, textBytes) + reasoningTokens;
  return usage.inputTokens <= inputMax && usage.outputTokens <= outputMax;
}

/**
 * The part of an implausible usage that is charged: what is held for, or twice that without a
 * limit, and the text that was delivered. It grows with the text, so that a stream ends where its
 * balance does.
 */
export function chargeablePart(usage: Usage, facts: PlausibleFacts): Usage {
  const factor = facts.isLimited ? 1 : unlimitedFactor;
  const inputTokens = Math.min(usage.inputTokens, factor * facts.inputTokens);
  const cachedInputTokens = Math.min(usage.cachedInputTokens, inputTokens);
  const cacheWriteTokens = Math.min(usage.cacheWriteTokens, inputTokens - cachedInputTokens);
  const textTokens = Math.ceil(facts.textBytes / bytesPerToken);
  const outputMax = factor * Math.max(facts.maxTokens, textTokens);
  // A vendor that counts wrongly may count too little, too.
  const outputTokens = Math.max(Math.min(usage.outputTokens, outputMax), textTokens);
  return {
    ...usage,
    inputTokens,
    cachedInputTokens,
    cacheWriteTokens,
    outputTokens,
    reasoningTokens: Math.min(usage.reasoningTokens, outputTokens),
  };
}

/** Figures of a vendor that are not charged to their whole. */
interface Implausible {
  /** The call or task that the log line names. */
  readonly id: { readonly callId: string } | { readonly taskId: string };
  readonly vendor: string;
  /** The vendor's name of the model. */
  readonly model: string | undefined;
  /** As reported by the vendor. */
  readonly usage: UsageFigures | undefined;
  /** Part that is not charged, in nano-USD. */
  readonly lossNanos: bigint;
}

type UsageFigures = Pick<Usage, "inputTokens" | "outputTokens"> & {
  readonly images?: number | undefined;
  readonly seconds?: number | undefined;
};

/**
 * Reports figures that are not charged: an alarm, the platform's loss, and a line of the log with
 * the figures.
 */
export function reportImplausible(
  { metrics, log }: { readonly metrics: Metrics; readonly log: Logger },
  { id, vendor, model: vendorModel, usage, lossNanos }: Implausible,
): void {
  metrics.upstreamAlarms.inc({ vendor, reason: "usage_implausible" });
  metrics.platformLoss.inc({ reason: "implausible" }, Number(lossNanos));
  const { inputTokens, outputTokens, images, seconds } = usage ?? {};
  log.error(
    {
      vendor,
      vendorModel,
      ...id,
      inputTokens,
      outputTokens,
      images,
      seconds,
      notCharged: formatUsd(lossNanos),
    },
    "a vendor reports more than the request and its reply can be: the rest was not charged; compare the call with the vendor's invoice",
  );
}
