/** What a vendor must offer to run tasks: pictures, films and sound that take their time. */
import type { JsonObject } from "@bufbuild/protobuf";
import type { PoolClient } from "pg";
import type { ModelType } from "../../gen/uas/inference/v1/model_pb.ts";
import type { ModelConfig, RouteConfig } from "../config/config.ts";
import type { VendorFault } from "./vendor.ts";

/**
 * How a vendor's tasks work. An adapter never repeats a request by itself. Where it cannot tell whether the vendor
 * took what it was asked, it throws HttpFailure; where it is sure that nothing runs, {@link TaskRefused}.
 */
export interface VendorTasks {
  /**
   * What can be done where a submit got no answer:
   * - `idempotent`: ask again with the same token; the vendor knows the repetition.
   * - `findable`: look for it by the token; ask again only where it is not there.
   * - `blind`: nothing. It is never asked again.
   */
  readonly resubmit: "idempotent" | "findable" | "blind";
  /** What it can produce. */
  readonly types: ReadonlySet<ModelType>;
  /** Whether a running task can be stopped. */
  readonly canCancel: boolean;
  /** Asks for a task. @throws TaskRefused where nothing runs; HttpFailure, VendorTrouble where that is not known */
  submit(task: TaskSubmission): Promise<Submitted>;
  /** Looks for what was submitted with a token; `undefined`: the vendor does not have it. Only of `findable`. */
  find?(attemptToken: string, signal: AbortSignal): Promise<Submitted | undefined>;
  /** Asks how a task stands. Absent: the vendor answers each submit at once. @param type what it makes, for vendors
   * that count all in one figure; default: what its files are. @throws HttpFailure; VendorTrouble */
  poll?(vendorTaskId: string, signal: AbortSignal, type?: ModelType): Promise<TaskUpdate>;
  /** How often it may be asked so, per second and credential, as it says itself. Default: it does not say. */
  readonly pollsPerSecond?: number;
  /** Asks to stop a task. Absent: it cannot, or where it can, it stops once the signal of its submit is aborted.
   * @throws HttpFailure; VendorTrouble */
  cancel?(vendorTaskId: string, signal: AbortSignal): Promise<CancelAnswer>;
  /** How it tells of news by itself, at the `callbackUrl` of a submission. Absent: it does not. */
  readonly callbacks?: VendorCallbacks;
  /**
   * What parameters a model takes: a JSON Schema (2020-12) of the canonical object, in camelCase, with
   * `properties` and closed by `additionalProperties: false`; the first of its `examples` is shown. Formats: `uri`
   * only, which is a file that the customer names. Absent: all parameters of the model's type.
   */
  paramsSchema?(model: ModelConfig, route: RouteConfig): JsonObject;
  /**
   * Refuses parameters that name what the vendor keeps for its account: a task cannot tell whose it is (R-VND-3).
   * Pure. Absent: no parameter can.
   *
   * @param field what callers know the object by, for example `imageParams`
   * @throws GatewayError INVALID_REQUEST
   */
  checkParams?(params: JsonObject, field: string): void;
  /** What was asked for: the most that a task can be charged for, but for {@link assumedSeconds}; pure. */
  units(params: JsonObject, model: ModelConfig): TaskUnits;
  /** How long films and sounds are of models that overlook what is said of their length, in seconds: held for at least.
   * Default: no model overlooks it. */
  readonly assumedSeconds?: number;
}

/**
 * How a vendor calls back. Whoever knows the address can call it: what is said there is a hint, and what it is
 * about is asked of the vendor. So the vendor's signature of it would prove nothing that counts.
 */
export interface VendorCallbacks {
  /** What the vendor calls the task that a callback is about; `undefined`: it does not say. Pure. */
  taskIdIn(this: void, body: Buffer): string | undefined;
  /**
   * Whether what the vendor calls so was submitted with this token: asked of the vendor itself.
   *
   * @throws HttpFailure; VendorTrouble
   */
  isOurs(
    this: void,
    vendorTaskId: string,
    attemptToken: string,
    signal: AbortSignal,
  ): Promise<boolean>;
}

/** Tasks with connections or timers of their own, to be closed with their vendor. */
export interface OpenTasks extends VendorTasks {
  close(): Promise<void>;
}

/** What a task is charged by. */
export interface TaskUnits {
  /** Tokens read. Default 0. */
  readonly inputTokens?: number;
  /** Tokens made. Default 0. */
  readonly outputTokens?: number;
  /** Pictures. Default 0. */
  readonly images?: number;
  /** Seconds of film or sound. Default 0. */
  readonly seconds?: number;
}

/** A task for a vendor. */
export interface TaskSubmission {
  /** The same in every attempt at one task, a UUID. */
  readonly attemptToken: string;
  /** The vendor's name of the model. */
  readonly model: string;
  readonly type: ModelType;
  /** As the schema has accepted them, in canonical names. */
  readonly params: JsonObject;
  readonly signal: AbortSignal;
  /** Where the vendor may tell that there is news; ends in the token. Default: nowhere. */
  readonly callbackUrl?: string;
  /** Called by a vendor inside this process when there is news: `poll` then tells it. Default: nobody is told. */
  readonly onUpdate?: () => void;
}

/** The vendor has the task, or is done with it already. */
export type Submitted =
  | { readonly vendorTaskId: string }
  | { readonly vendorTaskId?: string; readonly done: TaskOutcome };

/** How a task stands at its vendor. */
export type TaskUpdate =
  | {
      readonly status: "running";
      /** In percent. Default: not known. */
      readonly progress?: number;
    }
  | { readonly status: "completed"; readonly outcome: TaskOutcome }
  | { readonly status: "failed"; readonly error: TaskFault }
  | {
      readonly status: "cancelled";
      /** What the vendor says that it took for it all the same. Default: nothing. */
      readonly reportedCost?: ReportedCost;
    };

/** What a vendor took for a task that it stopped. What it does not tell it took nothing for. */
export interface ReportedCost {
  /** Tokens. Default: none. */
  readonly usage?: TaskTokens;
  /** What there was of it. Default: nothing that is counted: then only what is charged for each request counts. */
  readonly units?: TaskUnits;
}

/** What a task came to. */
export interface TaskOutcome {
  readonly files: readonly VendorFile[];
  /** The text result. Default: none. */
  readonly text?: string;
  /** Tokens. Default: none were told. */
  readonly usage?: TaskTokens;
  /** What was made. Default: what was asked for. */
  readonly units?: TaskUnits;
  /** What could not be carried between two styles. Default: nothing. */
  readonly dropped?: readonly string[];
  /** Writes what belongs to it, in the transaction that completes the task; it may be repeated. Default: nothing. */
  readonly inSameTransaction?: (transaction: Transaction) => Promise<void>;
}

/** A transaction of the database that is under way. */
export type Transaction = Pick<PoolClient, "query">;

/** Tokens of a task. */
export interface TaskTokens {
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Part of the input. Default 0. */
  readonly cachedInputTokens?: number;
  /** Part of the input. Default 0. */
  readonly cacheWriteTokens?: number;
  /** Part of the output. Default 0. */
  readonly reasoningTokens?: number;
  /** Whether the gateway has estimated them, because the vendor did not tell. Default false. */
  readonly isEstimated?: boolean;
}

/** A file at the vendor, or one that came with its answer: one of `url` and `bytes` is there. */
export interface VendorFile {
  readonly url?: string;
  /** What the vendor wants to see with `url`. Default: nothing. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Where `url` may send on to, once: exact host names, or what they end in, with a leading dot. Default:
   * anywhere on the public internet. */
  readonly redirectHosts?: readonly string[];
  readonly bytes?: Buffer;
  /** Its media type, for example `image/png`. */
  readonly contentType: string;
}

/** Why a task failed. */
export interface TaskFault {
  readonly code: TaskFaultCode;
  /** For the customer, in plain words. */
  readonly message: string;
}

/** Codes of failures that a vendor can be the reason of. */
export type TaskFaultCode = "content_rejected" | "invalid_parameters" | "upstream_error";

/**
 * - `cancelled`: it has ended.
 * - `requested`: it will be told by `poll`.
 * - `too_late`: it cannot be stopped any more.
 */
export type CancelAnswer = "cancelled" | "requested" | "too_late";

/** The vendor refused a task for certain: nothing runs there, and another one may be asked. */
export class TaskRefused extends Error {
  readonly code: TaskFaultCode;
  /** Whether the same task can be accepted later, or by another vendor. Default: it cannot. */
  readonly isTemporary: boolean;
  /** Whether another vendor may be asked for it. Default: where it is passing. */
  readonly canRetryElsewhere: boolean;
  /** What the operator must act on, as for text (R-ERR-3). `undefined`: nothing. */
  readonly fault: VendorFault | undefined;
  /** After how many seconds the vendor asks to try again. `undefined`: it does not say. */
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

/** The task was stopped while it was made, by the signal of its submit. */
export class TaskStopped extends Error {
  /** What the vendor takes for it. `undefined`: nothing, as far as is known. */
  readonly taken: ReportedCost | undefined;

  constructor(taken: ReportedCost | undefined, cause: unknown) {
    super("the task was stopped", { cause });
    this.name = "TaskStopped";
    this.taken = taken;
  }
}

/**
 * The vendor answered, but not with what was asked: it says nothing about the task, of which all stays as it was
 * known. The message is for the log, not for callers.
 */
export class VendorReplyError extends Error {
  /** The status of its answer. */
  readonly status: number;
  /** What the operator must act on (R-ERR-3). `undefined`: nothing. */
  readonly fault: VendorFault | undefined;

  constructor(status: number, message: string, fault?: VendorFault) {
    super(message);
    this.name = "VendorTrouble";
    this.status = status;
    this.fault = fault;
  }
}
