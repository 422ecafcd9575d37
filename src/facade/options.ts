import type { Readable } from "node:stream";
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Logger } from "pino";
import type { Dialect } from "../../gen/uas/http/v1/http_pb.ts";
import type { Authenticate, KeyCaller, OnRefusedKey } from "../core/caller.ts";
import type { CancelSignal } from "../core/cancel-signal.ts";
import type { Metrics } from "../core/metrics.ts";
import type { NativePrefix } from "../core/native-prefix.ts";
import type { Pushed, Sink } from "../core/sink.ts";
import type { RestRoute } from "./route-table.ts";
import type { ScopeOptions } from "./scope.ts";

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

/** A request in a wire style, as the contract's messages have it. */
interface WireFields {
  readonly dialect: Dialect;
  /** The path of the route. */
  readonly path: string;
  readonly query: string;
  readonly headers: Record<string, string>;
  readonly body: Buffer;
  readonly alwaysStream: boolean;
  readonly platformAliases: boolean;
  readonly strict: boolean;
}

/** Who calls, and where the reply goes. */
export interface DirectCall extends Sink<Buffer> {
  readonly keyCaller: KeyCaller;
  readonly requestId: string;
  readonly idempotencyKey: string | undefined;
  readonly signal: CancelSignal;
}

/** The handler of a method that takes a body in a wire style. @throws GatewayError where the sink was not told of the failure */
export type HandleWire = (request: WireFields, call: DirectCall) => Promise<Pushed>;

/** A request in a vendor's own form. */
export interface NativeFields {
  readonly prefix: string;
  readonly method: string;
  /** Below the prefix. */
  readonly path: string;
  readonly query: string;
  readonly headers: Record<string, string>;
  readonly body: Buffer;
}

/** The handlers that the facade calls without a transport between. */
export interface DirectHandlers {
  /** By method of the contract: all routes of these are direct. */
  readonly wire: ReadonlyMap<DescMethod, HandleWire>;
  /** @throws GatewayError where the sink was not told of the failure */
  readonly native: (request: NativeFields, call: DirectCall) => Promise<Pushed>;
  /** What an address that is a key for itself leads to. @throws GatewayError */
  readonly followLink: (
    request: Pick<NativeFields, "prefix" | "headers"> & { readonly token: string },
    call: Pick<DirectCall, "signal"> & Sink<Buffer>,
  ) => Promise<Pushed>;
}

/** What the facade needs of the rest. */
export interface FacadeOptions {
  /** The services whose routes to serve. */
  readonly services: readonly DescService[];
  /** Reaches them: in this process or another. */
  readonly transport: Transport;
  /** The handlers of calls to models. */
  readonly direct: DirectHandlers;
  readonly authenticate: Authenticate;
  /** Told of calls with keys that are known and no good. Default: nobody. */
  readonly onRefusedKey?: OnRefusedKey;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** Whether new requests are served: false while the gateway drains. */
  readonly isOpen: () => boolean;
  /** Refuses calls to models where as many run as may. @throws GatewayError SERVICE_UNAVAILABLE */
  readonly requireRoom: () => void;
  /** Aborted when running requests must end. */
  readonly stopping: AbortSignal;
  /** Whether everything that a call needs is there. Never asks a vendor. */
  readonly isReady: () => Promise<boolean>;
  /** Finds a result file by its token. */
  readonly findFile: FindFile;
  /** Takes vendors' callbacks. Default: none are known. */
  readonly callbacks?: CallbackDoor;
  /** The vendors' own interfaces that are served. */
  readonly natives: readonly NativePrefix[];
  /** Addresses and ranges of proxies that are trusted. */
  readonly trustProxy: readonly string[];
}

/** What registering one route needs. */
export interface RouteContext extends ScopeOptions {
  readonly route: RestRoute;
  /** Resolves the request id and the caller before the body is read. */
  readonly onRequest: (request: FastifyRequest, reply: FastifyReply) => Promise<void>;
}
