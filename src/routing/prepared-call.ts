/** A request that is ready for a vendor. */
import type { CancelSignal } from "../core/cancel-signal.ts";
import type { BilledFeatures } from "../dialect/features/billed-features.ts";
import type { BodySize } from "../wire/json/outline.ts";
import type { VendorReply } from "../provider/reply.ts";
import type { Vendor } from "../provider/vendor.ts";

/** A request as it is sent to a vendor. */
export interface PreparedCall {
  readonly headers: Readonly<Record<string, string>>;
  /** The body in pieces, to be sent in order. */
  readonly body: readonly Buffer[];
  /**
   * The body in one piece, if `body` differs from it by a few members only: measuring it avoids
   * joining the pieces. Default: the pieces are joined.
   */
  readonly source?: Buffer;
  /** The size of the body for a model, if building it scanned it. Absent if it is scanned again. */
  readonly size?: () => BodySize;
  /** Members that the vendor's style cannot carry, in the caller's words. */
  readonly dropped: readonly string[];
  /** Requested features beyond text. Absent if there are none. */
  readonly features?: BilledFeatures | undefined;
  /** Sends the request. Absent if it is sent in the planned dialect. @throws HttpFailure */
  readonly send?: ((vendor: Vendor, signal: CancelSignal) => Promise<VendorReply>) | undefined;
}
