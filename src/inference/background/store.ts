/** Responses in the background, in the table of those that are kept: what to make, and what was made. */
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import type { Pool } from "pg";
import {
  ExchangeRequestSchema,
  type ExchangeRequest,
} from "../../../gen/uas/inference/v1/inference_service_pb.ts";
import { storedResponseTtlMs } from "../../config/limits.ts";
import { mapDatabaseLoss } from "../../core/database-lost.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { parseRecord, recordsAt, textAt, type JsonRecord } from "../../dialect/json/value.ts";
import { withStatus } from "../../dialect/responses/response-json.ts";
import type { Transaction } from "../../vendor/task.ts";
import { noSuchResponse } from "../state/failures.ts";
import { inputItems, listedItems, storedItemIds } from "../state/input-items.ts";
import { finishSql, rememberSql, requestSql, saveSql } from "../state/response-sql.ts";
import type { ResponseStore } from "../state/response-store.ts";
import type { BackgroundTasks } from "./tasks.ts";

/** Keeps them. */
export interface BackgroundStore {
  /** Writes down what is to be made. */
  begin(transaction: Transaction, pending: NewBackground): Promise<void>;
  /** What is to be made; `undefined`: it was deleted, or is made. */
  find(accountId: string, responseId: string): Promise<FoundBackground | undefined>;
  /** Puts what was made in its place. Of a response that was deleted meanwhile nothing is kept. */
  finish(transaction: Transaction, finished: FinishedBackground): Promise<void>;
}

/** A response to make. */
interface NewBackground {
  readonly accountId: string;
  readonly responseId: string;
  readonly taskId: string;
  /** The public name of the model. */
  readonly model: string;
  /** The response that it continues; `undefined`: none. */
  readonly previousResponseId: string | undefined;
  /** What is told of it until it is made. */
  readonly pending: JsonRecord;
  /** The request's own `input`, parsed: a text or items. */
  readonly input: unknown;
  /** The exchange to make it with. */
  readonly request: ExchangeRequest;
}

/** A response that is to be made. */
export interface FoundBackground {
  readonly pending: JsonRecord;
  readonly request: ExchangeRequest;
  /** The request's own items. */
  readonly input: readonly JsonRecord[];
}

/** A response that was made. */
interface FinishedBackground {
  readonly accountId: string;
  readonly responseId: string;
  readonly response: JsonRecord;
  /** The request's own items. */
  readonly input: readonly JsonRecord[];
  /** The vendor that keeps it too, what that calls it, and what going on from it makes it read, in bytes.
   * `undefined`: none does. */
  readonly vendorCopy:
    | { readonly vendor: string; readonly responseId: string; readonly bytes: number }
    | undefined;
}

/** Makes it over the same database as the responses that are kept. */
export function createBackgroundStore(
  pool: Pick<Pool, "query">,
  responses: Pick<ResponseStore, "countWritten">,
): BackgroundStore {
  return {
    async begin(transaction, { accountId, responseId, model, taskId, ...pending }) {
      const items = inputItems(pending.input);
      const [response, input] = [toJsonBytes(pending.pending), toJsonBytes(items)];
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
        pending: parseRecord(row.response.toString()) ?? {},
        request: fromBinary(ExchangeRequestSchema, row.request),
        input: inputItems(JSON.parse(row.input.toString())),
      };
    },

    async finish(transaction, { accountId, responseId, response, input, vendorCopy }) {
      const output = recordsAt(response, "output");
      // What its vendor keeps is found there, by the ids that came with it.
      const items = vendorCopy === undefined ? listedItems(input, responseId) : input;
      const ids = storedItemIds([...items, ...output]);
      const json = toJsonBytes(response);
      const bytes = vendorCopy?.bytes ?? json.length + toJsonBytes(input).length;
      const size = Math.min(Math.ceil(bytes), 2 ** 31 - 1);
      const copy = [vendorCopy?.vendor ?? "", vendorCopy?.responseId ?? null];
      const values = [accountId, responseId, json, ids, size, storedResponseTtlMs, ...copy];
      const { rowCount } = await transaction.query(finishSql, values);
      if (vendorCopy === undefined) return responses.countWritten(accountId, size);
      if (rowCount === 0) return;
      // Replies that go on from it name it as its vendor does: that is an id of the account's, too.
      const { vendor, responseId: vendorResponseId } = vendorCopy;
      const model = textAt(response, "model");
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

function toJsonBytes(value: JsonRecord | readonly JsonRecord[]): Buffer {
  return Buffer.from(JSON.stringify(value));
}

/* How responses in the background stand. */

/** See {@link createBackgroundState}. */
export interface BackgroundState {
  /** The response as it stands, as JSON in UTF-8. @throws GatewayError NOT_FOUND */
  status(accountId: string, responseId: string): Promise<Buffer>;
  /** Asks to end one that is being made, and waits a moment for its end. One that has ended otherwise, or ends
   * soon, stays as it is. */
  cancel(accountId: string, taskId: string): Promise<void>;
}

/** Makes it. */
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
      // Its end and its response are one transaction: it came between the two questions.
      if (status.status === "completed") return this.status(accountId, responseId);
      const pending = parseRecord(response.toString()) ?? {};
      return Buffer.from(JSON.stringify(withStatus(pending, status)));
    },

    async cancel(accountId, taskId) {
      try {
        await tasks.cancel(accountId, taskId);
      } catch (error) {
        // What was made is being written down, or its task is older than tasks are kept.
        const { code } = error instanceof GatewayError ? error : { code: undefined };
        const isOver = code === ErrorCode.TASK_NOT_CANCELLABLE || code === ErrorCode.TASK_NOT_FOUND;
        if (!isOver) throw error;
      }
    },
  };
}
