import type { Readable } from "node:stream";
import type { DescService } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import type { Logger } from "pino";
import type { Authenticate } from "../caller.ts";
import type { Metrics } from "../metrics.ts";

/** A file to serve, whoever keeps it. */
export type ServedFile =
  | { readonly expired: true }
  | {
      readonly expired: false;
      readonly contentType: string;
      readonly extension: string;
      readonly bytes: number;
      readonly sha256: string;
      readonly expireTime: Date;
      /** Reads from one byte to another, both included. @throws GatewayError */
      open(range: { readonly start: number; readonly end: number }): Promise<Readable>;
    };

/** Finds a file by its token; `undefined`: there is none. */
export type FindFile = (token: string) => Promise<ServedFile | undefined>;

/** Takes what vendors tell of tasks by themselves. */
export interface CallbackDoor {
  /** Whether there is a task with this token. */
  isKnown(this: void, token: string): Promise<boolean>;
  /** Takes what was told of it. */
  take(this: void, token: string, body: Buffer): Promise<void>;
}

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
  /** Finds a result file by its token. */
  readonly findFile: FindFile;
  /** Takes vendors' callbacks. Default: none are known. */
  readonly callbacks?: CallbackDoor;
  /** Addresses and ranges of proxies that are trusted. */
  readonly trustProxy: readonly string[];
}
