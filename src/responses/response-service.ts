/** Implements ResponseService: an account reads, cancels and deletes its stored responses. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type {
  ListInputItemsRequest,
  StreamResponseResponseSchema,
  ResponseService,
} from "../../gen/uas/inference/v1/response_service_pb.ts";
import { type Caller, callerKey } from "../core/caller.ts";
import { admitCaller } from "../core/caller-rules.ts";
import { JsonText, writeJson } from "../wire/json/json-tree.ts";
import type { JsonRecord } from "../wire/json/value.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import {
  type FollowRequest,
  type FollowOptions,
  followEvents,
  requireStreamed,
} from "./background/event-log.ts";
import { streamHeaders } from "./background/submit.ts";
import { noSuchResponse, notInBackground, notStreamed } from "./stored/failures.ts";
import { itemId, itemsJson, type JsonItem, listedItems } from "./stored/input-items.ts";
import type { ResponseStore, StoredBackground, StoredResponse } from "./stored/response-store.ts";
import type { VendorState } from "./stored/vendor-state.ts";

/** Options of {@link createResponseService}. */
export interface ResponseServiceOptions {
  readonly store: ResponseStore;
  readonly vendorState: VendorState;
  /** Reads the events of background responses. */
  readonly followOptions: FollowOptions;
}

/** Creates the implementation of `uas.inference.v1.ResponseService`. */
export function createResponseService(
  options: ResponseServiceOptions,
): ServiceImpl<typeof ResponseService> {
  const { store, vendorState, followOptions } = options;
  const { background } = followOptions;
  const find = async (accountId: string, responseId: string): Promise<StoredResponse> => {
    const found = await store.find(accountId, responseId);
    if (found === undefined) throw noSuchResponse(responseId);
    return found;
  };
  return {
    async getResponse({ responseId, include }, { values, signal }) {
      const accountId = accountOf(values.get(callerKey));
      const found = await find(accountId, responseId);
      if (found.kind === "here") {
        if (found.background?.isPending !== true) return { response: found.response };
        return { response: await background.status(accountId, responseId) };
      }
      const query = queryOf({ include });
      return {
        response: await vendorState.send({ ...found, action: "get", responseId, query, signal }),
      };
    },

    streamResponse: ({ responseId, startingAfter: after = -1 }, { values, signal }) =>
      streamed({ accountId: accountOf(values.get(callerKey)), responseId, after, signal }, options),

    async cancelResponse({ responseId }, { values }) {
      const accountId = accountOf(values.get(callerKey));
      const found = await find(accountId, responseId);
      if (found.kind === "vendor" || !found.background) throw notInBackground(responseId);
      const { taskId, isPending } = found.background;
      if (isPending) await background.cancel(accountId, taskId);
      return { response: await background.status(accountId, responseId) };
    },

    async deleteResponse({ responseId }, { values, signal }) {
      const accountId = accountOf(values.get(callerKey));
      const found = await find(accountId, responseId);
      if (found.kind === "vendor") {
        // The vendor deletes first: a response that it still has must remain reachable.
        await vendorState.send({ ...found, action: "delete", responseId, query: "", signal });
      } else if (found.background !== undefined) {
        await endBackground(found.background, { accountId, signal }, options);
      }
      if (!(await store.delete(accountId, responseId))) throw noSuchResponse(responseId);
      return { responseId };
    },

    async listInputItems(request, { values, signal }) {
      const { responseId, limit, after, order, include } = request;
      const page = readListRequest(request);
      const found = await find(accountOf(values.get(callerKey)), responseId);
      if (found.kind === "here") {
        return { page: Buffer.from(writeJson(listPage(found.input, responseId, page))) };
      }
      const query = queryOf({ include, limit: limit || "", after, order });
      return {
        page: await vendorState.send({
          ...found,
          action: "list-input-items",
          responseId,
          query,
          signal,
        }),
      };
    },
  };
}

async function* streamed(
  request: Omit<FollowRequest, "taskId">,
  { store, followOptions }: ResponseServiceOptions,
): AsyncGenerator<MessageInitShape<typeof StreamResponseResponseSchema>, undefined> {
  const { accountId, responseId } = request;
  const found = await store.find(accountId, responseId);
  if (found === undefined) throw noSuchResponse(responseId);
  if (found.kind === "vendor" || !found.background) throw notStreamed(responseId);
  await requireStreamed(request, followOptions.events);
  yield { part: { case: "head", value: { status: 200, headers: { ...streamHeaders } } } };
  const { taskId } = found.background;
  for await (const value of followEvents({ ...request, taskId }, followOptions)) {
    yield { part: { case: "chunk", value } };
  }
}

/** Cancels a background response that is being deleted, and deletes the vendor's copy. */
async function endBackground(
  { taskId, isPending, vendorCopy }: StoredBackground,
  { accountId, signal }: { readonly accountId: string; readonly signal: AbortSignal },
  { followOptions: { background }, vendorState, store }: ResponseServiceOptions,
): Promise<void> {
  if (isPending) await background.cancel(accountId, taskId);
  if (vendorCopy === undefined) return;
  const deletion = { ...vendorCopy, model: "", action: "delete", query: "", signal } as const;
  await vendorState.send(deletion).catch(ignoreNotFound);
  await store.delete(accountId, vendorCopy.responseId);
}

/**
 * Ignores that the vendor no longer has the response: the gateway's copy is deleted in any case.
 */
function ignoreNotFound(error: unknown): void {
  if (!(error instanceof GatewayError) || error.code !== ErrorCode.NOT_FOUND) throw error;
}

/**
 * The caller's account. The access option admits keys only, but an operator that calls in process
 * has no account.
 */
function accountOf(caller: Caller | undefined): string {
  return admitCaller(caller, "Responses belong to accounts: send an API key").accountId;
}

/** The default page size, as the responses style defines it. */
const limitDefault = 20;

interface ListPage {
  readonly limit: number;
  readonly after: string;
  readonly isAscending: boolean;
}

function readListRequest({ limit, after, order }: ListInputItemsRequest): ListPage {
  return { limit: limit || limitDefault, after, isAscending: order === "asc" };
}

function listPage(
  input: readonly JsonItem[],
  responseId: string,
  { limit, after, isAscending }: ListPage,
): JsonRecord {
  const listed = listedItems(input, responseId);
  const items = isAscending ? listed : listed.toReversed();
  const start = after === "" ? 0 : items.findIndex(({ record }) => itemId(record) === after) + 1;
  if (after !== "" && start === 0) {
    throw invalid("after: there is no such item; send the `last_id` of the previous page", "after");
  }
  const page = items.slice(start, start + limit);
  const data = new JsonText(itemsJson(page));
  const ids = page.map(({ record }) => itemId(record) ?? null);
  const [first = null] = ids;
  const hasMore = start + limit < items.length;
  return { object: "list", data, first_id: first, last_id: ids.at(-1) ?? null, has_more: hasMore };
}

/** Formats a query as SDKs of the style do. */
function queryOf({
  include,
  ...single
}: Readonly<Record<string, string | number | readonly string[]>> & {
  readonly include: readonly string[];
}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(single)) {
    if (value !== "") query.set(name, String(value));
  }
  for (const each of include) query.append("include[]", each);
  return query.toString();
}

function invalid(message: string, param: string): GatewayError {
  return new GatewayError(ErrorCode.INVALID_REQUEST, message, { param });
}
