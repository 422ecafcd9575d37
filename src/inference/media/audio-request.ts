/** The parts that requests for speech and for the text of a recording share. */
import { create } from "@bufbuild/protobuf";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import { type Usage, UsageSchema, UsageSource } from "../../../gen/uas/type/v1/usage_pb.ts";
import type { UnitUsage } from "../../billing/prices/pricing.ts";
import type { VendorReply } from "../../vendor/reply.ts";
import type { Delivered, Metered } from "../metering.ts";
import { MediaRequest } from "./media-adapter.ts";

/** A request with audio on one side: anything but JSON is passed on as it comes. */
export abstract class AudioRequest extends MediaRequest {
  protected readonly modelType = ModelType.AUDIO;

  override isStreamed({ headers }: VendorReply): boolean {
    return !(headers["content-type"] ?? "").includes("json");
  }
}

/** What was delivered, in the units that audio is charged by. */
export interface DeliveredAudio {
  /** Its length; charged where a second has a price. */
  readonly seconds: number;
  /** Whether the length is a measured one. */
  readonly isMeasured: boolean;
  /** The tokens that count where the vendor reports none and tokens have a price. */
  readonly tokens: Pick<Usage, "inputTokens" | "outputTokens">;
  /** Further units. */
  readonly units?: UnitUsage;
}

/** Charges audio by what its price names. */
export function meterAudio({ reported, price }: Delivered, audio: DeliveredAudio): Metered {
  const hasTokens = price?.input !== undefined || price?.output !== undefined;
  const isTimed = price?.second !== undefined;
  const isEstimated = (hasTokens && reported === undefined) || (isTimed && !audio.isMeasured);
  const timed = isTimed ? { seconds: audio.seconds } : undefined;
  return {
    usage: reported ?? create(UsageSchema, hasTokens ? audio.tokens : {}),
    source: isEstimated ? UsageSource.ESTIMATED : UsageSource.UPSTREAM,
    units: audio.units ? { ...audio.units, ...timed } : timed,
    isCharged: true,
  };
}

/** Nothing was delivered, and nothing is charged. */
export const nothingMetered: Metered = {
  usage: undefined,
  source: UsageSource.UNSPECIFIED,
  isCharged: false,
};
