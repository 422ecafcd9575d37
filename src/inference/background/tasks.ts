/** What responses in the background need of whoever runs tasks: app.ts hands it in. */
import type { JsonObject } from "@bufbuild/protobuf";
import type { KeyCaller } from "../../core/caller.ts";
import type { ModelConfig } from "../../config/config.ts";
import type { Transaction } from "../../vendor/task.ts";

/** Runs responses as TEXT tasks. */
export interface BackgroundTasks {
  /**
   * Accepts one, durably: the row, its money and what `within` writes are one transaction.
   *
   * @throws GatewayError INSUFFICIENT_BALANCE, QUEUE_FULL, IDEMPOTENCY_KEY_REUSED
   */
  start(start: BackgroundStart): Promise<BackgroundStarted>;
  /** How one stands; `undefined`: the account has none by that id. */
  find(accountId: string, taskId: string): Promise<BackgroundStatus | undefined>;
  /**
   * Asks to end one, and waits a moment for its end. One that has ended stays as it is.
   *
   * @throws GatewayError TASK_NOT_FOUND
   */
  cancel(accountId: string, taskId: string): Promise<BackgroundStatus>;
  /** Begins to wait for changes of one: those from now on are not missed. */
  changes(taskId: string): BackgroundChanges;
}

/** Waits for changes of one response. */
export interface BackgroundChanges extends Disposable {
  /** Resolves at the next change since it was made or last resolved, after `ms`, or when `signal` is aborted. */
  next(ms: number, signal: AbortSignal): Promise<void>;
}

/** What to run. */
export interface BackgroundStart {
  /** Our id of the call, a UUIDv7: the task has it too. */
  readonly id: string;
  readonly caller: KeyCaller;
  readonly requestId: string;
  readonly model: ModelConfig;
  /** The most that it can be charged for. */
  readonly units: { readonly inputTokens: number; readonly outputTokens: number };
  /** Whoever runs it gets this. */
  readonly params: JsonObject;
  /** By which repetitions are known; `undefined`: each one counts. */
  readonly idempotencyKey: string | undefined;
  /** What tells another request under the same key. */
  readonly fingerprinted: JsonObject;
  /** Writes what belongs to it, in the transaction that accepts it. */
  readonly writeAlongside: (transaction: Transaction) => Promise<void>;
}

/** One that was accepted. */
export interface BackgroundStarted {
  readonly taskId: string;
  /** Whether it had been accepted before: nothing was written. */
  readonly replayed: boolean;
}

/** How one stands. */
export interface BackgroundStatus {
  readonly status: "queued" | "in_progress" | "completed" | "failed" | "cancelled";
  /** Why it failed: a documented code, and a text for its customer. Absent: it has not. */
  readonly error?: { readonly code: string; readonly message: string };
}
