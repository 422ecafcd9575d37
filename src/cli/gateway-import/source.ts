/** The configuration of another gateway, in one form for all gateways. */
import type { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";

/** The vendor of a deployment: a preset, or a kind. */
export interface Upstream {
  readonly preset?: string;
  readonly kind?: string;
  /** Absent for the address of the preset. */
  readonly baseUrl?: string;
}

/** One vendor's model that takes calls of a model. */
export interface Deployment {
  /** Its place in the imported file. */
  readonly place: string;
  /** The name that customers use; with `*` if {@link vendorModel} is a pattern. */
  readonly model: string;
  readonly upstream: Upstream;
  /** The vendor's name of the model, or `*` for all of the vendor. */
  readonly vendorModel: string;
  /** Variables with the credentials; empty if there are none. */
  readonly keys: readonly string[];
  /** Default 1. */
  readonly weight?: number;
  /** Lower numbers are used first. */
  readonly priority: number;
  readonly rpm?: number;
  readonly tpm?: number;
  /** Absent if the file does not say it: the name decides. */
  readonly type?: ModelType;
  readonly maxOutputTokens?: number;
  /** The price of the vendor. Absent if the file does not say it. */
  readonly cost?: ListedPrice;
  /** The price for customers. Absent: the cost with the margin. */
  readonly price?: ListedPrice;
}

/** Decimal amounts by their field in genai-prices, such as `input_mtok`. */
export type ListedPrice = ReadonlyMap<string, string>;

/** A part of the file that is not imported, or not exactly. */
export interface ImportNote {
  readonly place: string;
  /** The difference, and what to do. */
  readonly text: string;
}

/** The imported file. */
export interface ImportSource {
  readonly deployments: readonly Deployment[];
  /** Models that take the calls of a model if it fails, in order. */
  readonly fallbacks: ReadonlyMap<string, readonly string[]>;
  /** Markups such as `-20%` by the name of a price list. */
  readonly priceLists: ReadonlyMap<string, string>;
  /** Variables to set, each with the place of its credential in the imported file. */
  readonly variables: ReadonlyMap<string, string>;
  readonly notes: readonly ImportNote[];
}
