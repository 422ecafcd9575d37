/**
 * Stores background responses: first the request, then the response. They share the table of stored
 * responses.
 */
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import type { Pool } from "pg";
import {
  ExchangeRequestSchema,
  type ExchangeRequest,
} from "../../../gen/uas/inference/v1/inference_service_pb.ts";
import { storedResponseTtlMs } from "../../core/limits.ts";
import { mapDatabaseLoss } from "../../core/database-lost.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { parseRecord, textAt } from "../../wire/json/value.ts";
import { withStatus } from "../../dialect/responses/response-json.ts";
import type { Transaction } from "../../provider/task.ts";
import { noSuchResponse } from "../stored/failures.ts";
import {
  inputItems,
  itemsJson,
  type JsonItem,
  listedItems,
  outputItems,
  readItems,
  storedItemIds,
} from "../stored/input-items.ts";
import { finishSql, rememberSql, requestSql, saveSql } from "../stored/response-sql.ts";
import type { ResponseStore } from "../stored/response-store.ts";
import type { BackgroundTasks } from "./tasks.ts";

/** Stores background responses. */
export interface BackgroundStore {
  /** Stores a new background response. */
  begin(transaction: Transaction, pending: NewBackground): Promise<void>;
  /** Finds a pending response; undefined if it was deleted, or is complete. */
  find(accountId: string, responseId: string): Promise<FoundBackground | undefined>;
  /** Stores the complete response. Stores nothing if it was deleted meanwhile. */
  finish(transaction: Transaction, finished: FinishedBackground): Promise<void>;
}

/** A new background response. */
interface NewBackground {
  readonly accountId: string;
  readonly responseId: string;
  readonly taskId: string;
  /** The public name of the model. */
  readonly model: string;
  /** The continued response; undefined if there is none. */
  readonly previousResponseId: string | undefined;
  /** The response as clients see it until it is complete, as JSON. */
  readonly pending: string;
  /** The request's `input` as JSON: a text or items. Empty if it has none. */
  readonly input: string;
  /** The exchange that generates the response. */
  readonly request: ExchangeRequest;
}

/** A pending background response. */
export interface FoundBackground {
  /** The response as clients see it, as JSON. */
  readonly pending: string;
  readonly request: ExchangeRequest;
  /** The request's own items. */
  readonly input: readonly JsonItem[];
}

/** A complete background response. */
export interface FinishedBackground {
  readonly accountId: string;
  readonly responseId: string;
  /** JSON. */
  readonly response: string;
  /** The request's own items. */
  readonly input: readonly JsonItem[];
  /**
   * The vendor's copy: the vendor, its ID of the response, and the bytes that it reads when a
   * request continues the response. Undefined if the vendor has none.
   */
  readonly vendorCopy:
    | { readonly vendor: string; readonly responseId: string; readonly bytes: number }
    | undefined;
}

/** Creates the store, over the same database as `responses`. */
export function createBackgroundStore(
  pool: Pick<Pool, "query">,
  responses: Pick<ResponseStore, "countWritten">,
): BackgroundStore {
  return {
    async begin(transaction, { accountId, responseId, model, taskId, ...pending }) {
      const items = inputItems(pending.input);
      const response = Buffer.from(pending.pending);
      const input = Buffer.from(itemsJson(items));
      const request = toBinary(ExchangeRequestSchema, pending.request);
      const ids = storedItemIds(listedItems(items, responseId));
      const bytes = response.length + input.length + request.length;
      const { previousResponseId: previous = null } = pending;
      const values = [accountId, responseId, model, previous, response, input, ids, bytes];
      await transaction.query(saveSql, [...values, storedResponseTtlMs, taskId, request]);
      responses.countWritten(accountId, bytes);
    },

    async find(accountId, responseId) {
      const { rows } = await mapDatabaseLoss(pool.query<Row>(requestSql, [accountId, responseId]));
      const [row] = rows;
      if (row === undefined) return undefined;
      return {
        pending: row.response.toString(),
        request: fromBinary(ExchangeRequestSchema, row.request),
        input: readItems(row.input.toString()),
      };
    },

    async finish(transaction, { accountId, responseId, response, input, vendorCopy }) {
      const output = outputItems(response);
      // Items that the vendor stores are found by the vendor's ids.
      const items = vendorCopy === undefined ? listedItems(input, responseId) : input;
      const ids = storedItemIds([...items, ...output]);
      const json = Buffer.from(response);
      const bytes = vendorCopy?.bytes ?? json.length + Buffer.byteLength(itemsJson(input));
      const size = Math.min(Math.ceil(bytes), 2 ** 31 - 1);
      const copy = [vendorCopy?.vendor ?? "", vendorCopy?.responseId ?? null];
      const values = [accountId, responseId, json, ids, size, storedResponseTtlMs, ...copy];
      const { rowCount } = await transaction.query(finishSql, values);
      if (vendorCopy === undefined) return responses.countWritten(accountId, size);
      if (rowCount === 0) return;
      // Replies that continue it name the vendor's id: the account owns that id too.
      const { vendor, responseId: vendorResponseId } = vendorCopy;
      const model = textAt(parseRecord(response) ?? {}, "model");
      const alias = [accountId, vendorResponseId, model, vendor, ids, size, storedResponseTtlMs];
      await transaction.query(rememberSql, alias);
    },
  };
}

interface Row {
  readonly request: Buffer;
  readonly response: Buffer;
  readonly input: Buffer;
}

/** Reads and cancels background responses. */
export interface BackgroundState {
  /** The response with its current status, as JSON in UTF-8. @throws GatewayError NOT_FOUND */
  status(accountId: string, responseId: string): Promise<Buffer>;
  /**
   * Requests the cancel of a response, and waits briefly for its end. A response that has ended
   * otherwise stays as it is.
   */
  cancel(accountId: string, taskId: string): Promise<void>;
}

/** Creates the state of background responses. */
export function createBackgroundState(
  tasks: Pick<BackgroundTasks, "find" | "cancel">,
  responses: Pick<ResponseStore, "find">,
): BackgroundState {
  return {
    async status(accountId, responseId) {
      const found = await responses.find(accountId, responseId);
      if (found?.kind !== "here") throw noSuchResponse(responseId);
      const { response, background } = found;
      if (background?.isPending !== true) return response;
      const status = await tasks.find(accountId, background.taskId);
      if (status === undefined) throw noSuchResponse(responseId);
      // The task ended between the two reads. One transaction wrote its end and the response, so
      // read again.
      if (status.status === "completed") return this.status(accountId, responseId);
      return Buffer.from(withStatus(response.toString(), status));
    },

    async cancel(accountId, taskId) {
      try {
        await tasks.cancel(accountId, taskId);
      } catch (error) {
        // The result is being stored, or the task has expired.
        const { code } = error instanceof GatewayError ? error : { code: undefined };
        const isOver = code === ErrorCode.TASK_NOT_CANCELLABLE || code === ErrorCode.TASK_NOT_FOUND;
        if (!isOver) throw error;
      }
    },
  };
}
