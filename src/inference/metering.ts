/** What a call is charged for: R-MON-8 as one pure function. */
import { create } from "@bufbuild/protobuf";
import { type Usage, UsageSchema, UsageSource } from "../../gen/uas/type/v1/usage_pb.ts";
import type { UnitUsage } from "../billing/prices/price.ts";
import { bytesPerToken } from "../config/limits.ts";

/** What is known of a reply when it has ended, well or not. */
export interface Delivered {
  /** What the vendor reported; `undefined`: nothing. */
  readonly reported: Usage | undefined;
  /** What the request is counted or estimated as. Default 0: only where the vendor reported nothing it counts. */
  readonly inputTokens?: number;
  /** What the delivered text was counted as; absent: it was not, and its bytes must do. */
  readonly outputTokens?: number | undefined;
  /** Bytes of generated text that came. */
  readonly textBytes: number;
  /** Whether the reply reached its end: else a figure that was reported on the way may be too low. */
  readonly isComplete: boolean;
  /** What was made beside text. Default: nothing. */
  readonly units?: UnitUsage | undefined;
  /** Whether the vendor reads the input for a client that has disconnected: it is charged also where no content came
   * (R-MON-11). Default false. */
  readonly isInputOwed?: boolean;
  /** Whether any text was asked for: a request may only warm the vendor's prompt cache. Default true. */
  readonly isTextRequested?: boolean;
}

/** What the call consumed, and who says so. */
export interface Metered {
  readonly usage: Usage | undefined;
  readonly source: UsageSource;
  /** What was made beside text. Default: nothing. */
  readonly units?: UnitUsage | undefined;
  /** Whether it is charged at all. */
  readonly isCharged: boolean;
}

/**
 * The vendor's figures where it reported any; else those of the gateway. A reply without any content is
 * free, whatever was read for it, unless none was asked for or its client has disconnected.
 */
export function meter(delivery: Delivered): Metered {
  const { reported, inputTokens = 0, textBytes, isComplete, isTextRequested = true } = delivery;
  const { isInputOwed = false } = delivery;
  if (reported !== undefined) {
    // A vendor that sent text and counted nothing has not counted.
    const isCounted = isComplete && reported.outputTokens > 0;
    const delivered = isCounted ? 0 : estimateTokens(textBytes);
    if (reported.outputTokens < delivered) {
      const usage = { ...reported, outputTokens: delivered };
      return { usage, source: UsageSource.ESTIMATED, isCharged: true };
    }
    const isEmpty = reported.outputTokens === 0 && textBytes === 0;
    const isCharged = !isEmpty || isInputOwed || (isComplete && !isTextRequested);
    return { usage: reported, source: UsageSource.UPSTREAM, isCharged };
  }
  if (textBytes === 0 && !isInputOwed) {
    return { usage: undefined, source: UsageSource.UNSPECIFIED, isCharged: false };
  }
  const usage = create(UsageSchema, {
    inputTokens,
    outputTokens: delivery.outputTokens ?? estimateTokens(textBytes),
  });
  return { usage, source: UsageSource.ESTIMATED, isCharged: true };
}

/** The tokens that so many bytes of text usually are: what is charged where nobody counted them. What is
 * held is bounded otherwise: dialect/json/text-weight.ts. */
export function estimateTokens(bytes: number): number {
  return Math.ceil(bytes / bytesPerToken);
}

/** What embeddings are charged for: what was read for them, once they are there. */
export function meterInput(delivered: Delivered): Metered {
  const { reported, inputTokens = 0, isComplete, isInputOwed = false } = delivered;
  if (reported !== undefined) {
    return { usage: reported, source: UsageSource.UPSTREAM, isCharged: true };
  }
  if (!isComplete && !isInputOwed)
    return { usage: undefined, source: UsageSource.UNSPECIFIED, isCharged: false };
  const usage = create(UsageSchema, { inputTokens });
  return { usage, source: UsageSource.ESTIMATED, isCharged: true };
}
