/** What a vendor must offer. One file per kind implements it; index.ts lists them. */
import type { Dialect } from "../../gen/uas/http/v1/http_pb.ts";
import type { ModelType } from "../../gen/uas/inference/v1/model_pb.ts";
import type { CancelSignal } from "../core/cancel-signal.ts";
import type { VendorConfig } from "../config/config.ts";
import type { NativeTransport } from "./native-http.ts";
import type { NativeApi } from "./native.ts";
import type { VendorTasks } from "./task.ts";

/** A kind of vendor: how to make one from its configuration, and what it can serve. */
export interface VendorKind {
  /** The dialects that it speaks, best first. */
  readonly dialects: readonly Dialect[];
  readonly modelTypes: readonly ModelType[];
  /** Whether `base_url` must be given. */
  readonly needsBaseUrl: boolean;
  /** Whether `api_key` must be given. */
  readonly needsApiKey: boolean;
  /** What to do when the client leaves, where the configuration does not say: `drain` for a vendor that
   * charges for the whole reply whether anybody reads it or not. Default `grace`. */
  readonly onDisconnect?: "drain";
  /** Its own interface, served where the configuration gives it a prefix. Absent: it is not served. */
  readonly native?: NativeApi;
  create(config: VendorConfig): Vendor;
}

/** One vendor, ready to be asked. */
export interface Vendor {
  readonly name: string;
  readonly dialects: ReadonlySet<Dialect>;
  /**
   * Sends one text generation.
   *
   * @throws HttpFailure where no reply came
   */
  exchange(call: VendorCall): Promise<VendorReply>;
  /** Counts the tokens of a request for text generation without running it. Absent: it cannot. */
  readonly countTokens?: VendorOperation;
  /** Makes embeddings; requests have OpenAI's form. Absent: it cannot. */
  readonly embed?: VendorOperation;
  /**
   * What a refusal says about the operator's own account, where its status alone does not tell; pure.
   * Absent: the status always tells.
   *
   * @param body the first part of the refusal's body
   * @returns `undefined`: nothing; judge it by its status
   */
  readonly faultOf?: (status: number, body: Buffer) => VendorFault | undefined;
  /**
   * When a refused call makes sense again, in whole seconds from 1 on, where the vendor tells it in the
   * body and not in `retry-after`; pure. Absent: it never does.
   */
  readonly retryAfterOf?: (body: Buffer) => number | undefined;
  /**
   * Reads or deletes a response that the vendor keeps. Absent: it keeps none, and each request must carry its
   * whole conversation.
   *
   * @throws HttpFailure where no reply came
   */
  readonly responseState?: (call: ResponseStateCall) => Promise<VendorReply>;
  /** Runs tasks. Absent: it cannot. */
  readonly tasks?: VendorTasks;
  /** Reaches it in its own form. Absent: it has no {@link VendorKind.native}. */
  readonly native?: NativeTransport;
  close(): Promise<void>;
}

/** What can be asked of a vendor beside text generation. */
export type OperationName = "countTokens" | "embed";

/** Something that a vendor can do beside text generation. */
export interface VendorOperation {
  /** The dialects in which it can be asked for it. */
  readonly dialects: ReadonlySet<Dialect>;
  /** Asks for it. @throws HttpFailure where no reply came */
  readonly send: (call: VendorCall) => Promise<VendorReply>;
}

/** What the operator must act on: the key or its rights, the account's money, a model's name. */
export type VendorFault = "credential" | "money" | "model";

/** A text generation, or another operation, in a dialect that the vendor speaks. */
export interface VendorCall {
  readonly dialect: Dialect;
  /** The vendor's name of the model: some want it in the address. */
  readonly model: string;
  /** The query to pass on, without its question mark; usually empty. */
  readonly query: string;
  /** Headers of the client that the dialect lets through. */
  readonly headers: Readonly<Record<string, string>>;
  /** In pieces, to be sent one after the other. */
  readonly body: readonly Buffer[];
  /** Whether the body asks for a stream. */
  readonly stream: boolean;
  /** Whether it is waited for as long as the signal lets, whatever the vendor's timeouts. Default false. */
  readonly isPatient?: boolean;
  readonly signal: CancelSignal;
}

/** Something to do with a response that the vendor keeps. */
export interface ResponseStateCall {
  readonly action: "get" | "delete" | "list-input-items";
  readonly responseId: string;
  /** The query to pass on, without its question mark; usually empty. */
  readonly query: string;
  readonly signal: CancelSignal;
}

/** What the vendor answered. */
export interface VendorReply {
  readonly status: number;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: VendorBody;
}

/** A reply's body, read as `while (await body.ready()) use(body.take())`. */
export interface VendorBody {
  /** Resolves to whether there is something to take; false at the end. Rejects with HttpFailure where
   * the reply broke. One reader at a time. */
  ready(): Promise<boolean>;
  /** What has arrived: all of it, in pieces. */
  take(): readonly Buffer[];
  /** Reads all of it; rejects with HttpFailure beyond `bytesMax`. */
  whole(bytesMax: number): Promise<Buffer>;
  /** Stops the vendor where it has not ended. */
  cancel(): void;
}
