import type { DescService } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import type { Logger } from "pino";
import type { Authenticate } from "../caller.ts";
import type { Metrics } from "../metrics.ts";

/** What the facade needs of the rest. */
export interface FacadeOptions {
  /** The services whose routes to serve. */
  readonly services: readonly DescService[];
  /** Reaches them: in this process or another. */
  readonly transport: Transport;
  readonly authenticate: Authenticate;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** Whether new requests are served: false while the gateway drains. */
  readonly isOpen: () => boolean;
  /** Aborted when running requests must end. */
  readonly stopping: AbortSignal;
  /** Whether everything that a call needs is there. Never asks a vendor. */
  readonly isReady: () => Promise<boolean>;
  /** Addresses and ranges of proxies that are trusted. */
  readonly trustProxy: readonly string[];
}
