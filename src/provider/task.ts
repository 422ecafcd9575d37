/** The interface of vendors that run tasks: images, videos and audio, which take a while. */
import type { JsonObject } from "@bufbuild/protobuf";
import type { PoolClient } from "pg";
import type { ModelType } from "../../gen/uas/inference/v1/model_pb.ts";
import type { ModelConfig, RouteConfig } from "../config/config.ts";
import type { RareQuantities } from "../config/price-units.ts";

/**
 * A vendor's tasks. Adapters never retry by themselves. If it is unknown whether the vendor
 * received a request, an adapter throws HttpFailure; if certainly nothing runs, {@link
 * TaskRefused}.
 */
export interface VendorTasks {
  /**
   * How to recover from a submit without a reply:
   *
   * - `idempotent`: submit again with the same token; the vendor recognises the repeat.
   * - `findable`: look the task up by the token; submit again only if it is not found.
   * - `blind`: never submit again.
   */
  readonly resubmit: "idempotent" | "findable" | "blind";
  /** The model types that it can run. */
  readonly types: ReadonlySet<ModelType>;
  /** Whether a running task can be cancelled. */
  readonly canCancel: boolean;
  /**
   * Submits a task. @throws TaskRefused if nothing runs; HttpFailure or VendorReplyError if that is
   * unknown
   */
  submit(task: TaskSubmission): Promise<Submitted>;
  /**
   * Finds a task by its attempt token; `undefined` if the vendor does not have it. Only for
   * `findable`.
   */
  find?(attemptToken: string, signal: AbortSignal): Promise<Submitted | undefined>;
  /**
   * Polls a task. Absent if the vendor answers each submit with the result.
   *
   * @param type the requested type, for vendors that report one figure for all types. Default:
   * inferred from the files
   * @throws HttpFailure; VendorReplyError
   */
  poll?(vendorTaskId: string, signal: AbortSignal, type?: ModelType): Promise<TaskUpdate>;
  /** The vendor's documented limit on polls per second and credential. Default: none documented. */
  readonly pollsPerSecond?: number;
  /**
   * Requests cancellation. Absent if not possible, or aborting the signal of the submit cancels.
   *
   * @throws HttpFailure; VendorReplyError
   */
  cancel?(vendorTaskId: string, signal: AbortSignal): Promise<CancelAnswer>;
  /** Callbacks to the `callbackUrl` of a submission. Absent if the vendor sends none. */
  readonly callbacks?: VendorCallbacks;
  /**
   * The parameters of a model: a JSON Schema (2020-12) of the canonical object in camelCase, with
   * `properties` and `additionalProperties: false`; the first of its `examples` is shown. The only
   * format is `uri`, for a file given by URL. Absent for all parameters of the model's type.
   */
  paramsSchema?(model: ModelConfig, route: RouteConfig): JsonObject;
  /**
   * Refuses parameters that name objects stored in the vendor's account, because tasks do not
   * record their owners (R-VND-3). Pure. Absent if no parameter can name one.
   *
   * @param field the callers' name of the object, for example `imageParams`
   * @throws GatewayError INVALID_REQUEST
   */
  checkParams?(params: JsonObject, field: string): void;
  /**
   * The requested units: the most that a task can be charged, except for {@link assumedSeconds}.
   * Pure.
   */
  units(params: JsonObject, model: UnitModel): TaskUnits;
  /**
   * Length of video and audio, from models that ignore the requested length. The hold covers at
   * least this. Default: no model ignores it.
   */
  readonly assumedSeconds?: number;
  /**
   * The longest result of parameters that do not say its length, in seconds: held, but charged only
   * as far as it is made. Default: {@link units}. Pure.
   */
  secondsMax?(params: JsonObject, model: ModelConfig): number;
}

/**
 * Callbacks of a vendor. Anyone who knows the URL can call it, so the content is not trusted and
 * the vendor is polled. A vendor's signature would therefore prove nothing of use.
 */
export interface VendorCallbacks {
  /** The vendor's id of the task that a callback is about; `undefined` if there is none. Pure. */
  taskIdIn(this: void, body: Buffer): string | undefined;
  /**
   * Asks the vendor whether the task with this ID was submitted with this token.
   *
   * @throws HttpFailure; VendorReplyError
   */
  isOurs(
    this: void,
    vendorTaskId: string,
    attemptToken: string,
    signal: AbortSignal,
  ): Promise<boolean>;
}

/** Tasks that own connections or timers, closed with their vendor. */
export interface OpenTasks extends VendorTasks {
  close(): Promise<void>;
}

/**
 * Properties of a model that decide the units of a task besides its parameters. They stay available
 * when the model is no longer configured.
 */
export type UnitModel = Pick<ModelConfig, "type" | "maxOutputTokens">;

/** The billable units of a task. */
export interface TaskUnits {
  /** Input tokens. Default 0. */
  readonly inputTokens?: number;
  /** Output tokens. Default 0. */
  readonly outputTokens?: number;
  /** Images. Default 0. */
  readonly images?: number;
  /** Seconds of video or audio. Default 0. */
  readonly seconds?: number;
  /** Characters of the text to speak. Default 0. */
  readonly characters?: number;
}

/** A task to submit. */
export interface TaskSubmission {
  /** A UUID, the same in every attempt at one task. */
  readonly attemptToken: string;
  /** The vendor's name of the model. */
  readonly model: string;
  readonly type: ModelType;
  /** Validated parameters, in canonical names. */
  readonly params: JsonObject;
  readonly signal: AbortSignal;
  /**
   * Like {@link signal}, but not aborted when the client cancels. Absent if a cancel does not abort
   * `signal` either.
   */
  readonly lastSignal?: AbortSignal | undefined;
  /** URL for the vendor's callbacks; ends in the token. Default: none. */
  readonly callbackUrl?: string;
  /** Called by vendors within this process when `poll` has an update. Default: no callback. */
  readonly onUpdate?: () => void;
}

/** The vendor has accepted the task, or has already finished it. */
export type Submitted =
  | { readonly vendorTaskId: string }
  | { readonly vendorTaskId?: string; readonly done: TaskOutcome };

/** The state of a task at its vendor. */
export type TaskUpdate =
  | {
      readonly status: "running";
      /** Progress in percent. Default: unknown. */
      readonly progress?: number;
    }
  | { readonly status: "completed"; readonly outcome: TaskOutcome }
  | { readonly status: "failed"; readonly error: TaskFault }
  | {
      readonly status: "cancelled";
      /** The vendor's cost of the cancelled task. Default: nothing. */
      readonly reportedCost?: ReportedCost;
    };

/** The cost that a vendor reports for a cancelled task. Absent figures mean no cost. */
export interface ReportedCost {
  /** Tokens. Default: none. */
  readonly usage?: TaskTokens;
  /** Units that were produced. Default: none; then only the price per request applies. */
  readonly units?: TaskUnits;
}

/** The result of a task. */
export interface TaskOutcome {
  readonly files: readonly VendorFile[];
  /** The text result. Default: none. */
  readonly text?: string;
  /** Tokens. Default: not reported. */
  readonly usage?: TaskTokens;
  /**
   * The vendor's figures, if they are implausible: {@link usage} is then their chargeable part.
   * Default: none.
   */
  readonly implausibleUsage?: TaskTokens | undefined;
  /** Whether nothing is charged, because the reply has no content. Default false. */
  readonly isFree?: boolean;
  /** Produced units. Default: the requested units. */
  readonly units?: TaskUnits;
  /** Members that could not be carried between styles. Default: none. */
  readonly dropped?: readonly string[];
  /**
   * Writes related rows within the transaction that completes the task; may run more than once.
   * Default: no rows.
   */
  readonly inSameTransaction?: WriteRows;
}

/** Writes rows within a transaction. */
export type WriteRows = (transaction: Transaction) => Promise<void>;

/** An open database transaction. */
export type Transaction = Pick<PoolClient, "query">;

/** The tokens of a task, and what else a text can be charged for. */
export interface TaskTokens extends RareQuantities {
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Part of the input. Default 0. */
  readonly cachedInputTokens?: number;
  /** Part of the input. Default 0. */
  readonly cacheWriteTokens?: number;
  /** Part of the output. Default 0. */
  readonly reasoningTokens?: number;
  /** Whether the gateway estimated them because the vendor did not report any. Default false. */
  readonly isEstimated?: boolean;
}

/** A file at the vendor, or in its reply: either `url` or `bytes` is present. */
export interface VendorFile {
  readonly url?: string;
  /** Headers required for `url`. Default: none. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Hosts that `url` may redirect to, once: exact names, or suffixes with a leading dot. Default:
   * any public host.
   */
  readonly redirectHosts?: readonly string[];
  readonly bytes?: Buffer;
  /** The media type, for example `image/png`. */
  readonly contentType: string;
}

/** Why a task failed. */
export interface TaskFault {
  readonly code: TaskFaultCode;
  /** For the customer, in plain words. */
  readonly message: string;
}

/**
 * Failure codes that a vendor can cause. `invalid_request`: of background responses, whose
 * customers send no parameters.
 */
export type TaskFaultCode =
  | "content_rejected"
  | "invalid_parameters"
  | "invalid_request"
  | "upstream_error";

/**
 * - `cancelled`: the task has ended.
 * - `requested`: `poll` will report the outcome.
 * - `too_late`: the task can no longer be cancelled.
 */
export type CancelAnswer = "cancelled" | "requested" | "too_late";

/** The vendor certainly refused the task: nothing runs there, and another vendor may be tried. */
export class TaskRefused extends Error {
  readonly code: TaskFaultCode;
  /** Whether the same task can be accepted later, or by another vendor. Default false. */
  readonly isTemporary: boolean;
  /** Whether another vendor may be tried. Default: the value of `isTemporary`. */
  readonly canRetryElsewhere: boolean;
  /** The fault that the operator must fix, as for text (R-ERR-3); `undefined` for none. */
  readonly fault: VendorFault | undefined;
  /** Seconds until the vendor accepts a retry; undefined if it does not say. */
  readonly retryAfterSeconds: number | undefined;

  constructor(
    code: TaskFaultCode,
    message: string,
    isPassing = false,
    about: Partial<Pick<TaskRefused, "fault" | "retryAfterSeconds" | "canRetryElsewhere">> = {},
  ) {
    super(message);
    this.name = "TaskRefused";
    this.code = code;
    this.isTemporary = isPassing;
    this.canRetryElsewhere = isPassing || about.canRetryElsewhere === true;
    this.fault = about.fault;
    this.retryAfterSeconds = about.retryAfterSeconds;
  }
}

/** The task was cancelled by the signal of its submit. */
export class TaskStopped extends Error {
  /** The vendor's cost; `undefined` if none is known. */
  readonly reportedCost: ReportedCost | undefined;

  constructor(taken: ReportedCost | undefined, cause: unknown) {
    super("the task was stopped", { cause });
    this.name = "TaskStopped";
    this.reportedCost = taken;
  }
}

/**
 * The vendor's reply is unusable: it says nothing about the task, whose known state remains. The
 * message is for the log, not for callers.
 */
export class VendorReplyError extends Error {
  /** The HTTP status of the reply. */
  readonly status: number;
  /** The fault that the operator must fix (R-ERR-3); `undefined` for none. */
  readonly fault: VendorFault | undefined;

  constructor(status: number, message: string, fault?: VendorFault) {
    super(message);
    this.name = "VendorReplyError";
    this.status = status;
    this.fault = fault;
  }
}

/**
 * A fault that the operator must fix: the key or its rights, the account's money, or a model's
 * name.
 */
export type VendorFault = "credential" | "money" | "model";
