/**
 * The interface between requests for images or speech and the room that runs tasks; app/gateway.ts
 * connects them.
 */
import type { JsonObject } from "@bufbuild/protobuf";
import type { KeyCaller } from "../../../core/caller.ts";
import type { GatewayError } from "../../../core/errors.ts";
import type { ModelConfig } from "../../../config/config.ts";

/** Runs requests for images or speech as tasks of their models. */
export interface MediaTasks {
  /**
   * The task parameters of a model; undefined means none of its vendors makes images or audio as
   * tasks.
   */
  find(model: ModelConfig): MediaTaskModel | undefined;
  /**
   * Accepts a task, durably, with its hold.
   *
   * @throws GatewayError INSUFFICIENT_BALANCE, QUEUE_FULL, IDEMPOTENCY_KEY_REUSED
   */
  start(start: MediaTaskStart): Promise<MediaTaskStarted>;
  /** Waits for the end of a task. Resolves to `undefined` when `signal` is aborted before. */
  wait(accountId: string, taskId: string, signal: AbortSignal): Promise<MediaTaskEnd | undefined>;
  /**
   * Requests the cancel of a task whose client has disconnected. Never rejects: a task may have to
   * go on.
   */
  cancel(accountId: string, taskId: string): Promise<void>;
}

/** The task parameters of a model for images or audio. */
export interface MediaTaskModel {
  readonly model: ModelConfig;
  /** The name of the parameter object in errors. */
  readonly field: string;
  /** JSON Schema of the parameters, in camelCase. */
  readonly schema: JsonObject;
  /**
   * Checks parameters and gives them their canonical names. @throws GatewayError INVALID_REQUEST
   */
  readonly read: (params: JsonObject) => JsonObject;
}

/** A task to start. */
export interface MediaTaskStart {
  /** A UUIDv7. */
  readonly id: string;
  readonly caller: KeyCaller;
  readonly requestId: string;
  /** The path of the request, for the call log. */
  readonly path: string;
  readonly model: ModelConfig;
  /** Checked parameters. */
  readonly params: JsonObject;
  /** Requests with the same key start one task; undefined if each request starts one. */
  readonly idempotencyKey: string | undefined;
}

/** An accepted task. */
export interface MediaTaskStarted {
  readonly taskId: string;
  /** Whether an earlier request started it: nothing is charged again. */
  readonly replayed: boolean;
}

/** The result of a task: its files, or the reason for its failure. */
export type MediaTaskEnd =
  | { readonly error: GatewayError }
  | {
      readonly error?: undefined;
      readonly finishTime: Date;
      readonly files: readonly TaskFile[];
      readonly inputTokens: number;
      readonly outputTokens: number;
      readonly costNanos: bigint;
    };

/** A file in the gateway's store of results. */
export interface TaskFile {
  /** Its public address, until it expires. */
  readonly url: string;
  readonly contentType: string;
  /** Reads the file. @throws GatewayError if it cannot be read */
  read(): Promise<Buffer>;
}
