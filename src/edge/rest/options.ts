import type { DialectId } from "../../dialect/index.ts";
import type { Readable } from "node:stream";
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Logger } from "pino";
import type { RequestLog } from "../request-log.ts";
import type { MediaOperation } from "../../../gen/uas/http/v1/http_pb.ts";
import type { ExchangeRequest } from "../../../gen/uas/inference/v1/inference_service_pb.ts";
import type { Authenticate, KeyCaller, OnRefusedKey } from "../../core/caller.ts";
import type { CancelSignal } from "../../core/cancel-signal.ts";
import type { Metrics } from "../../observe/metrics.ts";
import type { NativePrefix } from "../../core/native-prefix.ts";
import type { SentReply, Sink } from "../../core/sink.ts";
import type { BodyBudget } from "../bodies/body-budget.ts";
import type { ArrivingForm } from "./request-parts.ts";
import type { RestRoute } from "./route-table.ts";

/** A result file, wherever it is stored. */
export type ServedFile =
  | { readonly expired: true }
  | {
      readonly expired: false;
      readonly contentType: string;
      readonly extension: string;
      readonly bytes: number;
      readonly sha256: string;
      /** Time until it expires. */
      readonly leftMs: number;
      /** Opens a byte range; both ends are inclusive. @throws GatewayError */
      open(range: { readonly start: number; readonly end: number }): Promise<Readable>;
    };

/** Finds a file by its token; undefined if there is none. */
export type FindFile = (token: string) => Promise<ServedFile | undefined>;

/** Receives vendors' callbacks about tasks. */
export interface CallbackReceiver {
  /** Whether a task with this token exists. */
  isKnown(this: void, token: string): Promise<boolean>;
  /** Handles the content of a callback. */
  take(this: void, token: string, body: Buffer): Promise<void>;
}

/** A request in a wire style: the message of the contract, so that no call copies it. */
interface WireFields extends ExchangeRequest {
  readonly body: Buffer;
  /** The requested image or audio operation. Unspecified on other routes. */
  readonly mediaOperation: MediaOperation;
  /**
   * A form with files, which is read while it arrives; `body` is then empty. Undefined if the body
   * is JSON.
   */
  readonly form?: ArrivingForm | undefined;
}

/** The caller of a direct route, and the sink for its reply. */
export interface DirectCall extends Sink<Buffer> {
  readonly keyCaller: KeyCaller;
  readonly requestId: string;
  readonly idempotencyKey: string | undefined;
  readonly traceparent: string | undefined;
  readonly signal: CancelSignal;
}

/**
 * Handles a request in a wire style. @throws GatewayError for failures that were not written to the
 * sink
 */
export type HandleWire = (request: WireFields, call: DirectCall) => Promise<SentReply>;

/** A request to a native vendor API. */
export interface NativeFields {
  readonly prefix: string;
  readonly method: string;
  /** The path below the prefix. */
  readonly path: string;
  readonly query: string;
  readonly headers: Record<string, string>;
  readonly body: Buffer;
}

/** Handlers that the facade calls without a transport. */
export interface DirectHandlers {
  /** By method of the contract. All routes of these methods are direct. */
  readonly wire: ReadonlyMap<DescMethod, HandleWire>;
  /** @throws GatewayError for failures that were not written to the sink */
  readonly native: (request: NativeFields, call: DirectCall) => Promise<SentReply>;
  /** Follows a path that is itself a credential. @throws GatewayError */
  readonly followLink: (
    request: Pick<NativeFields, "prefix" | "headers"> & { readonly token: string },
    call: Pick<DirectCall, "signal"> & Sink<Buffer>,
  ) => Promise<SentReply>;
}

/** Dependencies of the facade. */
export interface FacadeOptions {
  /** The services whose routes are served. */
  readonly services: readonly DescService[];
  /** Calls those services, in this process or another. */
  readonly transport: Transport;
  /** Handlers of model calls. */
  readonly direct: DirectHandlers;
  readonly authenticate: Authenticate;
  /** Called for recognised keys that are disabled, deleted or expired. Does nothing by default. */
  readonly onRefusedKey?: OnRefusedKey;
  readonly metrics: Metrics;
  readonly requests: RequestLog;
  readonly log: Logger;
  /** Whether new requests are served; false while the gateway drains. */
  readonly isOpen: () => boolean;
  /** Refuses model calls at the concurrency limit. @throws GatewayError SERVICE_UNAVAILABLE */
  readonly requireCapacity: () => void;
  /** The budgets of request bodies. */
  readonly bodies: BodyBudget;
  /**
   * Aborted if clients should reconnect, with the reason "replacement" if another process serves
   * the same address. Never aborted by default.
   */
  readonly draining?: AbortSignal | undefined;
  /** Aborted when running requests must end. */
  readonly stopping: AbortSignal;
  /** Why calls cannot be served; `undefined` if they can. Never contacts a vendor. */
  readonly whyNotReady: () => Promise<string | undefined>;
  /** Finds a result file by token. */
  readonly findFile: FindFile;
  /** Receives vendors' callbacks. By default every token is unknown. */
  readonly callbacks?: CallbackReceiver;
  /** The native vendor APIs to serve. */
  readonly natives: (this: void) => readonly NativePrefix[];
  /** Returns the origins whose pages may call. None by default. */
  readonly corsOrigins?: (() => readonly string[]) | undefined;
  /** Addresses and ranges of trusted proxies. */
  readonly trustProxy: readonly string[];
  /** The public origin; with https, browsers use nothing else. Unknown by default. */
  readonly publicUrl?: string | undefined;
  /** The origin of the console, if it has a separate host. By default it answers on every host. */
  readonly consoleUrl?: string | undefined;
}

/** Options of one route. */
export interface RouteContext extends ScopeOptions {
  readonly route: RestRoute;
  /** Determines the request id and the caller before the body is read. */
  readonly onRequest: (request: FastifyRequest, reply: FastifyReply) => Promise<void>;
}

export interface ScopeOptions extends FacadeOptions {
  readonly dialect: DialectId;
  readonly routes: readonly RestRoute[];
}
