/**
 * The interface between background responses and the room that runs tasks; app/gateway.ts connects
 * them.
 */
import type { MaxUsage } from "../../billing/prices/pricing.ts";
import type { JsonObject } from "@bufbuild/protobuf";
import type { KeyCaller } from "../../core/caller.ts";
import type { ModelConfig } from "../../config/config.ts";
import type { Transaction } from "../../provider/task.ts";

/** Runs background responses as TEXT tasks. */
export interface BackgroundTasks {
  /**
   * Accepts a response, durably: one transaction writes the task, its hold and the writes of
   * `writeAlongside`.
   *
   * @throws GatewayError INSUFFICIENT_BALANCE, QUEUE_FULL, IDEMPOTENCY_KEY_REUSED
   */
  start(start: BackgroundStart): Promise<BackgroundStarted>;
  /** The status of a response; undefined if the account has none with this id. */
  find(accountId: string, taskId: string): Promise<BackgroundStatus | undefined>;
  /**
   * Requests the cancel of a response, and waits briefly for its end. A response that has ended
   * stays as it is.
   *
   * @throws GatewayError TASK_NOT_FOUND
   */
  cancel(accountId: string, taskId: string): Promise<BackgroundStatus>;
  /** Subscribes to the changes of a response from now on. */
  changes(taskId: string): BackgroundChanges;
}

/** A subscription to the changes of one response. */
export interface BackgroundChanges extends Disposable {
  /** Resolves at the first change since the last call, after `ms`, or when `signal` is aborted. */
  next(ms: number, signal: AbortSignal): Promise<void>;
}

/** A response to run. */
export interface BackgroundStart {
  /** The id of the call and of the task, a UUIDv7. */
  readonly id: string;
  readonly caller: KeyCaller;
  readonly requestId: string;
  readonly model: ModelConfig;
  /** The maximum usage, for the hold. */
  readonly units: MaxUsage;
  /** The task parameters, for the runner. */
  readonly params: JsonObject;
  /** Requests with the same key start one response; undefined if each request starts one. */
  readonly idempotencyKey: string | undefined;
  /** The request; a different one under the same key is refused. */
  readonly fingerprinted: JsonObject;
  /** Called in the transaction that accepts the response, to write further rows. */
  readonly writeAlongside: (transaction: Transaction) => Promise<void>;
}

/** An accepted response. */
export interface BackgroundStarted {
  readonly taskId: string;
  /** Whether an earlier request started it: nothing was written. */
  readonly replayed: boolean;
}

/** The status of a background response. */
export interface BackgroundStatus {
  readonly status: "queued" | "in_progress" | "completed" | "failed" | "cancelled";
  /** The error: a documented code and a text for the customer. Absent if it has not failed. */
  readonly error?: { readonly code: string; readonly message: string };
}
