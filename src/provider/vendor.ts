/** The interface of vendors. Each kind implements it in a separate folder; index.ts lists them. */
import type { VendorReply } from "./reply.ts";
import type { VendorFault, VendorTasks } from "./task.ts";
import type { Dialect } from "../../gen/uas/http/v1/http_pb.ts";
import type { ModelType } from "../../gen/uas/inference/v1/model_pb.ts";
import type { StreamedBody } from "../http/request-body.ts";
import type { CancelSignal } from "../core/cancel-signal.ts";
import type { VendorConfig } from "../config/config.ts";
import type { VendorQuirks } from "../core/vendor-quirks.ts";
import type { NativeTransport } from "./native-http.ts";
import type { NativeApi } from "./native.ts";

/** A vendor kind: creates vendors from their configuration. */
export interface VendorKind {
  /** The dialects of the kind, best first. */
  readonly dialects: readonly Dialect[];
  readonly modelTypes: readonly ModelType[];
  /** Whether `base_url` is required. */
  readonly needsBaseUrl: boolean;
  /** Whether `api_key` is required. */
  readonly needsApiKey: boolean;
  /**
   * Behaviour after a client disconnects, if the configuration has none: `drain` for vendors that
   * charge for the whole reply whether it is read or not. Default `grace`.
   */
  readonly onDisconnect?: "drain";
  /**
   * The member of chat completions that limits a reply, if the configuration names none (R-TXT-11).
   * Absent if the kind does not speak chat completions.
   */
  readonly limitParameter?: "max_tokens" | "max_completion_tokens";
  /** Deviations of its vendors from their documented dialects. Absent if there are none. */
  readonly quirks?: VendorQuirks;
  /** The request that checks its address and credential. Absent if it has neither. */
  readonly probe?: VendorProbe;
  /** The native API, served if the configuration has a prefix for it. Absent if there is none. */
  readonly native?: NativeApi;
  create(config: VendorConfig): Vendor;
}

/** The request of a kind that checks address and credential. */
export interface VendorProbe {
  readonly request: (config: VendorConfig) => ProbeRequest;
  /**
   * Reads the names of the models of a reply; undefined if it does not list those of calls. Absent
   * if the vendor has no list of models.
   */
  readonly readModels?: (reply: unknown, config: VendorConfig) => readonly string[] | undefined;
}

/** A request that is free of charge. */
export interface ProbeRequest {
  readonly url: string;
  /** The headers that carry the credential, and others that the vendor requires. */
  readonly headers: Readonly<Record<string, string>>;
  /** The body of a POST request. Default: a GET request. */
  readonly body?: string;
  /**
   * Whether the request is wrong on purpose, for vendors without a free request: its refusal shows
   * that the credential is accepted. Default false.
   */
  readonly isWrong?: boolean;
}

/** An open vendor. */
export interface Vendor {
  readonly name: string;
  readonly dialects: ReadonlySet<Dialect>;
  /**
   * Sends one text generation.
   *
   * @throws HttpFailure if there was no reply
   */
  exchange(call: VendorCall): Promise<VendorReply>;
  /** Counts the tokens of a text generation without running it. Absent if not available. */
  readonly countTokens?: VendorOperation;
  /** Compacts a conversation. Absent if the vendor cannot, or does not speak responses. */
  readonly compact?: VendorOperation;
  /** Creates embeddings; requests are in OpenAI's form. Absent if not available. */
  readonly embed?: VendorOperation;
  /**
   * Orders documents by relevance; requests are in the styles of rerank. Absent if not available.
   */
  readonly rerank?: VendorOperation;
  /**
   * Classifies texts by harm, and continues texts; requests are in OpenAI's form. Absent if not
   * available.
   */
  readonly moderate?: VendorOperation;
  readonly complete?: VendorOperation;
  /**
   * Generates images; requests are in OpenAI's form. Absent if not available, or as {@link
   * Vendor.tasks} only.
   */
  readonly generateImages?: VendorOperation;
  /**
   * Speaks texts; requests are in OpenAI's form. Absent if not available, or as {@link
   * Vendor.tasks} only.
   */
  readonly speak?: VendorOperation;
  /**
   * Changes images, varies them, and turns speech into text; requests are in OpenAI's form. Absent
   * if not available.
   */
  readonly editImages?: VendorOperation;
  readonly varyImages?: VendorOperation;
  readonly transcribe?: VendorOperation;
  readonly translate?: VendorOperation;
  /**
   * Finds a fault of the operator's account in a refusal whose status does not reveal it. Pure.
   * Absent if the status is enough.
   *
   * @param body the first part of the refusal's body
   * @returns `undefined` means that the status decides
   */
  readonly faultOf?: (status: number, body: Buffer) => VendorFault | undefined;
  /**
   * Reads the retry delay from a refusal's body, in whole seconds ≥ 1, for vendors that do not use
   * `retry-after`. Pure. Absent if bodies have none.
   */
  readonly retryAfterOf?: (body: Buffer) => number | undefined;
  /**
   * Reads or deletes a response stored at the vendor. Absent if the vendor stores none, and each
   * request must carry its whole conversation.
   *
   * @throws HttpFailure if there was no reply
   */
  readonly responseState?: (call: ResponseStateCall) => Promise<VendorReply>;
  /** Runs tasks. Absent if not available. */
  readonly tasks?: VendorTasks;
  /** Calls the vendor's native API. Absent: {@link VendorKind.native} is absent too. */
  readonly native?: NativeTransport;
  close(): Promise<void>;
}

/** Operations besides text generation. */
export type OperationName = "countTokens" | BodyOperationName | MediaOperationName;

/** Operations whose requests are one JSON body. */
export type BodyOperationName = "embed" | "rerank" | "moderate" | "complete";

/** Operations of models for images and audio. */
export type MediaOperationName =
  | "generateImages"
  | "editImages"
  | "varyImages"
  | "speak"
  | "transcribe"
  | "translate";

/** An operation besides text generation. */
export interface VendorOperation {
  /** The dialects of its requests. */
  readonly dialects: ReadonlySet<Dialect>;
  /** Sends a request. @throws HttpFailure if there was no reply */
  readonly send: (call: VendorCall) => Promise<VendorReply>;
}

/** A text generation, or another operation, in a dialect of the vendor. */
export interface VendorCall {
  readonly dialect: Dialect;
  /** The vendor's name of the model; some vendors require it in the URL. */
  readonly model: string;
  /** The query to forward, without the question mark; usually empty. */
  readonly query: string;
  /** Client headers that the dialect forwards. */
  readonly headers: Readonly<Record<string, string>>;
  /** Pieces of the body, in order; or a body that is read while it is sent. */
  readonly body: readonly Buffer[] | StreamedBody;
  /** The type of the body. Default: JSON. */
  readonly contentType?: string | undefined;
  /** Whether the body requests a stream. */
  readonly stream: boolean;
  /** Ignore timeouts; only `signal` ends the call. Default false. */
  readonly isPatient?: boolean;
  readonly signal: CancelSignal;
}

/** An operation on a response stored at the vendor. */
export interface ResponseStateCall {
  readonly action: "get" | "delete" | "list-input-items";
  readonly responseId: string;
  /** The query to forward, without the question mark; usually empty. */
  readonly query: string;
  readonly signal: CancelSignal;
}
