/** A route of one call, as it is planned. */
import type { Dialect } from "../../gen/uas/http/v1/http_pb.ts";
import type { ModelConfig, PriceConfig, RouteConfig, VendorConfig } from "../config/config.ts";

/** A route, and the style of the request to its vendor. */
export interface PlannedRoute {
  readonly route: RouteConfig;
  /** The dialect of the request; undefined if the vendor speaks none, or is not configured. */
  readonly dialect: Dialect | undefined;
  /**
   * Time for which the reply is read after the client disconnected, to learn its usage (R-MON-11):
   * 0 stops the vendor at once, Infinity reads to the end.
   */
  readonly detachedReadMs: number;
  /** The vendor's configured address. Absent if it has none. */
  readonly vendorUrl?: string;
  /** The vendor's `file_buckets`. Absent if there is none. */
  readonly fileBuckets?: readonly string[] | undefined;
  /** The vendor's `unknown_betas`. Default: refused. */
  readonly unknownBetas?: VendorConfig["unknownBetas"];
  /** `vendor/model` in a form that a header may carry. Absent if the route is not shown. */
  readonly name?: string;
  /** Lower numbers are used first. Default 0. */
  readonly priority?: number;
  /** Its share of calls among routes of the same priority. Default 1. */
  readonly weight?: number;
  /** The only credential to use. Default: any of the vendor's. */
  readonly credential?: string | undefined;
  /** The model that takes the call on this route. Default: the requested model. */
  readonly fallback?: FallbackModel | undefined;
}

/** A model that takes a call when all routes of the requested one fail. */
export interface FallbackModel {
  readonly model: ModelConfig;
  readonly price: PriceConfig;
}
