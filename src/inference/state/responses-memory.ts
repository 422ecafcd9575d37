/** What one request of the responses style refers to, and what is kept of its reply. */
import { itemReferencesMax, bytesPerToken } from "../../config/limits.ts";
import { asBuffer } from "../../core/bytes.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { applyEdits } from "../../dialect/body-members.ts";
import { hasEscapedAscii } from "../../dialect/json/escapes.ts";
import { ObjectScan, quote } from "../../dialect/json/object-scan.ts";
import { sliceText, type Outline } from "../../dialect/json/outline.ts";
import {
  countAt,
  parseRecord,
  recordAt,
  recordsAt,
  type JsonRecord,
} from "../../dialect/json/value.ts";
import { isReference } from "../../dialect/responses/guard.ts";
import { noSuchItem, noSuchPrevious, tooManyReferences } from "./failures.ts";
import { inputItems, itemId } from "./input-items.ts";
import type { ReasoningCarry } from "./reasoning.ts";
import type { ResponseStore } from "./response-store.ts";

/** A request with what it refers to put in its place. */
export interface RecalledRequest {
  readonly body: Buffer;
  /** The only vendor that can serve it; `undefined`: any. */
  readonly vendor: string | undefined;
  /** What that vendor reads beside the body, in bytes of text. */
  readonly storedBytes: number;
  /** The response whose conversation was put in, and which the body names no more: the reply names it. */
  readonly previous?: string;
}

/**
 * Puts the items of earlier responses into a request that refers to them. `undefined`: it refers to none.
 * Whose they are is checked here: a vendor knows nothing of accounts.
 *
 * @throws GatewayError INVALID_REQUEST where the account has no such response or item, REQUEST_TOO_LARGE,
 * SERVICE_UNAVAILABLE
 */
export function recallResponses(
  store: ResponseStore,
  accountId: string,
  { body, outline }: { readonly body: Uint8Array; readonly outline: Outline },
): Promise<RecalledRequest> | undefined {
  const bytes = asBuffer(body);
  return canRefer(bytes, outline) ? recall(store, accountId, { body: bytes, outline }) : undefined;
}

async function recall(
  store: ResponseStore,
  accountId: string,
  { body, outline }: { readonly body: Buffer; readonly outline: Outline },
): Promise<RecalledRequest> {
  const record = parseRecord(body.toString("utf8")) ?? {};
  const previous = record["previous_response_id"];
  const unchanged: RecalledRequest = { body, vendor: undefined, storedBytes: 0 };
  if (typeof previous !== "string") return withReferences(store, accountId, unchanged, record);
  const chain = await store.resolve(accountId, previous);
  if (chain === undefined) throw noSuchPrevious(previous);
  if (chain.kind === "vendor") {
    const { vendor, responseId, bytes: storedBytes } = chain;
    const known = { body: renamed(body, outline, responseId), vendor, storedBytes };
    const renamedRecord = { ...record, previous_response_id: responseId };
    return withReferences(store, accountId, known, renamedRecord);
  }
  const { previous_response_id: _gone, ...rest } = record;
  const input = [...chain.items, ...inputItems(record["input"])];
  const whole = { ...rest, input };
  const expanded = { ...unchanged, body: Buffer.from(JSON.stringify(whole)), previous };
  return withReferences(store, accountId, expanded, whole);
}

/** The body with the id that the vendor knows its response by; else the same bytes. */
function renamed(body: Buffer, { members }: Outline, responseId: string): Buffer {
  const text = JSON.stringify(responseId);
  const edits = members
    .filter(({ key }) => key === "previous_response_id")
    .filter((member) => sliceText(body, member) !== text)
    .map(({ valueStart: start, valueEnd: end }) => ({ start, end, text }));
  return edits.length === 0 ? body : Buffer.concat(applyEdits(body, edits));
}

/** Replaces references to items that are kept here by the items, and finds who keeps the others. */
async function withReferences(
  store: ResponseStore,
  accountId: string,
  request: RecalledRequest,
  record: JsonRecord,
): Promise<RecalledRequest> {
  const input: readonly unknown[] = Array.isArray(record["input"]) ? record["input"] : [];
  const ids = new Set(input.flatMap((item) => referenceOf(item) ?? []));
  if (ids.size === 0) return request;
  if (ids.size > itemReferencesMax) throw tooManyReferences(itemReferencesMax);
  const found = await store.findItems(accountId, [...ids]);
  const others = [...ids].filter((id) => !found.has(id));
  const vendorItems = await store.findVendorItems(accountId, others);
  const known = new Set(vendorItems.flatMap(({ itemIds }) => itemIds));
  const missing = others.find((id) => !known.has(id));
  if (missing !== undefined) throw noSuchItem(missing);
  const vendor = request.vendor ?? vendorItems[0]?.vendor;
  const elsewhere = vendorItems.find((each) => each.vendor !== vendor);
  if (elsewhere !== undefined) throw storedElsewhere(elsewhere.vendor);
  // Each of a conversation's responses has all before it in its size.
  const storedBytes = Math.max(request.storedBytes, ...vendorItems.map(({ bytes }) => bytes));
  if (found.size === 0) return { ...request, vendor, storedBytes };
  const items = input.map((item) => found.get(referenceOf(item) ?? "") ?? item);
  const body = Buffer.from(JSON.stringify({ ...record, input: items }));
  return { ...request, body, vendor, storedBytes };
}

/** The id that an item of the input refers to; `undefined`: it is an item itself. */
function referenceOf(item: unknown): string | undefined {
  return isReference(item) ? item.id : undefined;
}

/** Whether a body may refer to something: seldom wrong, and never where it does. */
function canRefer(bytes: Buffer, { members, nested }: Outline): boolean {
  if (members.some(({ key }) => key === "previous_response_id")) return true;
  if (!nested.mayHave("id")) return false;
  return bytes.includes('"item_reference"') || hasEscapedAscii(bytes) || hasUntypedItem(bytes);
}

function hasUntypedItem(bytes: Buffer): boolean {
  const item = new ObjectScan();
  return new ObjectScan()
    .scan(bytes, 0, bytes.length)
    .elements("input")
    .some(({ start, end }) => {
      const { size } = item.scan(bytes, start, end);
      return size > 0 && item.kind("type") !== quote && item.kind("role") !== quote;
    });
}

/** A reply that may have to be kept. */
interface FinishedReply {
  readonly accountId: string;
  /** The public name of the model. */
  readonly model: string;
  /** The request as the client sent it. */
  readonly request: Uint8Array;
  /** Its outline. */
  readonly outline: Outline;
  /** What goes to the client with the end of the reply: all of it, or the event that ends its stream. */
  readonly last: Buffer;
  /** The vendor that keeps the response itself; `undefined`: it was translated, and is kept here. */
  readonly vendor: string | undefined;
}

/**
 * Keeps a whole response, or notes who keeps it: before the client learns that it is complete. `undefined`: it
 * is not to be kept, and then nothing of it is parsed.
 */
export function storeResponse(
  store: ResponseStore,
  reply: FinishedReply,
): Promise<void> | undefined {
  // As the style has it: kept unless said otherwise.
  return memberValue(reply, "store") === false ? undefined : storeReply(store, reply);
}

async function storeReply(store: ResponseStore, reply: FinishedReply): Promise<void> {
  const { accountId, model, vendor, last } = reply;
  const response = endedResponse(last) ?? parseRecord(last.toString("utf8"));
  const responseId = response?.["id"];
  if (response === undefined || typeof responseId !== "string") return;
  const input = memberValue(reply, "input");
  if (vendor !== undefined) {
    const items = [...inputItems(input), ...recordsAt(response, "output")];
    const itemIds = items.flatMap((item) => (referenceOf(item) ? [] : (itemId(item) ?? [])));
    const bytes = contextBytes(response);
    await store.remember({ accountId, responseId, model, vendor, itemIds, bytes });
    return;
  }
  const previous = memberValue(reply, "previous_response_id");
  await store.save({
    accountId,
    responseId,
    model,
    previousResponseId: typeof previous === "string" ? previous : undefined,
    response: Buffer.from(JSON.stringify(response)),
    input,
  });
}

/** One member of the request; `undefined` where it is absent. Of several the last, as JSON.parse has it. */
function memberValue({ request, outline }: FinishedReply, name: string): unknown {
  const member = outline.members.findLast(({ key }) => key === name);
  return member === undefined ? undefined : JSON.parse(sliceText(request, member));
}

/** What going on from a response makes a vendor read, in bytes of text, as it counted. */
export function contextBytes(response: JsonRecord): number {
  const usage = recordAt(response, "usage") ?? {};
  const tokens = (countAt(usage, "input_tokens") ?? 0) + (countAt(usage, "output_tokens") ?? 0);
  return tokens * bytesPerToken;
}

/** The response object in the event that ends a stream; `undefined`: none is among these bytes. */
function endedResponse(bytes: Buffer): JsonRecord | undefined {
  // A line's beginning cannot stand in the JSON of another event: line breaks are escaped there.
  const lines = bytes.toString("utf8").split(/\r\n|\n|\r/);
  const data = lines.findLast((line) => line.startsWith("data:") && endings.test(line));
  const event = data === undefined ? undefined : parseRecord(data.slice("data:".length));
  return event === undefined ? undefined : recordAt(event, "response");
}

const endings = /"response\.(?:completed|incomplete)"/;

/** What a caller is told whose conversation another vendor keeps than those that serve the model. */
export function storedElsewhere(vendor: string): GatewayError {
  return new GatewayError(
    ErrorCode.INVALID_REQUEST,
    "The response that `previous_response_id` names is kept by a vendor that does not serve this model; use the model that it was made with, or send the conversation in `input`",
    { param: "previous_response_id", internal: `kept by ${vendor}` },
  );
}

/** What is kept between calls. */
export interface CallState {
  readonly responses: ResponseStore;
  readonly reasoning: ReasoningCarry;
}
