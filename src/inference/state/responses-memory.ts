/** What one request of the responses style refers to, and what is kept of its reply. */
import { parseRecord, type JsonRecord, recordsAt } from "../../dialect/json.ts";
import { asBuffer } from "../../dialect/json-scan.ts";
import { ErrorCode, GatewayError } from "../../errors.ts";
import { noSuchPrevious } from "./failures.ts";
import { inputItems } from "./input-items.ts";
import type { ResponseStore } from "./response-store.ts";

/** A request with what it refers to put in its place. */
export interface RecalledRequest {
  readonly body: Buffer;
  /** The only vendor that can serve it; `undefined`: any. */
  readonly vendor: string | undefined;
  /** The response whose conversation was put in, and which the body names no more: the reply names it. */
  readonly previous?: string;
}

/**
 * Puts the items of earlier responses into a request that refers to them. `undefined`: it refers to none.
 * Whose they are is checked here: a vendor knows nothing of accounts.
 *
 * @throws GatewayError INVALID_REQUEST where the account has no such response, REQUEST_TOO_LARGE,
 * SERVICE_UNAVAILABLE
 */
export function recallResponses(
  store: ResponseStore,
  accountId: string,
  body: Uint8Array,
): Promise<RecalledRequest> | undefined {
  const bytes = asBuffer(body);
  const mentions = bytes.includes('"previous_response_id"') || bytes.includes('"item_reference"');
  return mentions ? recall(store, accountId, bytes) : undefined;
}

async function recall(
  store: ResponseStore,
  accountId: string,
  body: Buffer,
): Promise<RecalledRequest> {
  const record = parseRecord(body.toString("utf8")) ?? {};
  const previous = record["previous_response_id"];
  const unchanged = { body, vendor: undefined };
  if (typeof previous !== "string") return withReferences(store, accountId, unchanged, record);
  const chain = await store.resolve(accountId, previous);
  if (chain === undefined) throw noSuchPrevious(previous);
  if (chain.kind === "vendor") return { body, vendor: chain.vendor };
  const { previous_response_id: _gone, ...rest } = record;
  const input = [...chain.items, ...inputItems(record["input"])];
  const recalled = await withReferences(store, accountId, undefined, { ...rest, input });
  return { ...recalled, previous };
}

/** Replaces references to items that are kept here by the items. */
async function withReferences(
  store: ResponseStore,
  accountId: string,
  unchanged: RecalledRequest | undefined,
  record: JsonRecord,
): Promise<RecalledRequest> {
  const items = typeof record["input"] === "string" ? [] : recordsAt(record, "input");
  const ids = items.flatMap((item) => referenceOf(item) ?? []);
  if (ids.length === 0 && unchanged !== undefined) return unchanged;
  const found = await store.findItems(accountId, ids);
  if (found.size === 0 && unchanged !== undefined) return unchanged;
  const input = items.map((item) => found.get(referenceOf(item) ?? "") ?? item);
  const whole = ids.length === 0 ? record : { ...record, input };
  return { body: Buffer.from(JSON.stringify(whole)), vendor: undefined };
}

function referenceOf(item: JsonRecord): string | undefined {
  const { type, id } = item;
  return type === "item_reference" && typeof id === "string" ? id : undefined;
}

/** A reply that may have to be kept. */
export interface RepliedTo {
  readonly accountId: string;
  /** The public name of the model. */
  readonly model: string;
  /** The request as the client sent it. */
  readonly request: Uint8Array;
  /** The vendor that keeps the response itself; `undefined`: it was translated, and is kept here. */
  readonly vendor: string | undefined;
}

/** The request's own input and wish, as they are kept. */
function wishOf(request: Uint8Array): {
  store: boolean;
  previous: string | undefined;
  input: unknown;
} {
  const record = parseRecord(asBuffer(request).toString("utf8")) ?? {};
  const previous = record["previous_response_id"];
  return {
    // As the style has it: kept unless said otherwise.
    store: record["store"] !== false,
    previous: typeof previous === "string" ? previous : undefined,
    input: record["input"],
  };
}

/** Keeps a whole response, or notes who keeps it: before the client learns that it is complete. */
export async function keepResponse(
  store: ResponseStore,
  replied: RepliedTo,
  response: JsonRecord,
): Promise<void> {
  const responseId = response["id"];
  const { accountId, model, vendor } = replied;
  const { store: isWanted, previous, input } = wishOf(replied.request);
  if (!isWanted || typeof responseId !== "string") return;
  if (vendor !== undefined) {
    await store.remember({ accountId, responseId, model, vendor });
    return;
  }
  const bytes = Buffer.from(JSON.stringify(response));
  const kept = {
    accountId,
    responseId,
    model,
    previousResponseId: previous,
    response: bytes,
    input,
  };
  await store.save(kept);
}

/** The response object in the event that ends a stream; `undefined`: none is among these bytes. */
export function endedResponse(bytes: Buffer): JsonRecord | undefined {
  for (const type of ["response.completed", "response.incomplete"]) {
    const at = bytes.lastIndexOf(`event: ${type}`);
    const start = at < 0 ? -1 : bytes.indexOf("data: ", at);
    if (start < 0) continue;
    const end = bytes.indexOf("\n", start);
    const event = parseRecord(bytes.toString("utf8", start + 6, end < 0 ? bytes.length : end));
    const response = event?.["response"];
    if (typeof response === "object" && response !== null) return response as JsonRecord;
  }
  return undefined;
}

/** What a caller is told whose conversation another vendor keeps than those that serve the model. */
export function keptElsewhere(vendor: string): GatewayError {
  return new GatewayError(
    ErrorCode.INVALID_REQUEST,
    "The response that `previous_response_id` names is kept by a vendor that does not serve this model; use the model that it was made with, or send the conversation in `input`",
    { param: "previous_response_id", internal: `kept by ${vendor}` },
  );
}
