/** Resolves the references of responses requests, and stores their replies. */
import { itemReferencesMax, bytesPerToken } from "../../core/limits.ts";
import { asBuffer } from "../../core/bytes.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { applyEdits, readOutline, withoutMembers } from "../../dialect/body-members.ts";
import { hasEscapedAscii } from "../../wire/json/escapes.ts";
import { ObjectScan, quote } from "../../wire/json/scan.ts";
import { sliceText, type Outline } from "../../wire/json/outline.ts";
import { listElements, memberOf, withoutSpace } from "../../wire/json/source.ts";
import { countAt, parseRecord, recordAt, type JsonRecord } from "../../wire/json/value.ts";
import { isReference } from "../../dialect/responses/guard.ts";
import { noSuchItem, noSuchPrevious, tooManyReferences } from "./failures.ts";
import { inputItems, itemId, outputItems } from "./input-items.ts";
import type { ReasoningCarry } from "./reasoning.ts";
import type { ResponseStore } from "./response-store.ts";

/** A request whose references are resolved. */
export interface RecalledRequest {
  readonly body: Buffer;
  /** The only vendor that can serve it; undefined for any. */
  readonly vendor: string | undefined;
  /** The stored text that the vendor reads in addition to the body. */
  readonly storedBytes: number;
  /**
   * The continued response, if its conversation replaced its id in the body. The reply repeats the
   * id.
   */
  readonly previous?: string;
}

/**
 * Replaces references to earlier responses by their items. Undefined if the request has no
 * references. Ownership is checked here, because a vendor does not know the gateway's accounts.
 *
 * @throws GatewayError INVALID_REQUEST if the account has no such response or item,
 * REQUEST_TOO_LARGE, SERVICE_UNAVAILABLE
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
  asked: AskedRequest,
): Promise<RecalledRequest> {
  const { body } = asked;
  const previous = valueOf(asked, "previous_response_id");
  const input = inputElements(jsonOf(asked, "input"));
  const unchanged: RecalledRequest = { body, vendor: undefined, storedBytes: 0 };
  if (typeof previous !== "string") {
    return withReferences(store, accountId, { request: unchanged, input });
  }
  const chain = await store.resolve(accountId, previous);
  if (chain === undefined) throw noSuchPrevious(previous);
  if (chain.kind === "vendor") {
    const { vendor, responseId, bytes: storedBytes } = chain;
    const renamed = withMember(asked, "previous_response_id", JSON.stringify(responseId));
    const request = { body: renamed, vendor, storedBytes };
    return withReferences(store, accountId, { request, input });
  }
  // An element that is no item is refused later; here it would be one of the conversation.
  const own = input.filter((element) => element.startsWith("{"));
  const items = [...chain.items.map(({ json }) => json), ...own];
  const rest = withoutMembers(body, asked.outline.members, new Set(["previous_response_id"]));
  const whole = withMember(outlined(rest), "input", `[${items.join(",")}]`);
  const request = { ...unchanged, body: whole, previous };
  return withReferences(store, accountId, { request, input: items });
}

/** A request and its outline. */
interface AskedRequest {
  readonly body: Buffer;
  readonly outline: Outline;
}

function outlined(body: Buffer): AskedRequest {
  return { body, outline: readOutline(body) };
}

/** The elements of an input, each as JSON; a text is one message of the user. */
function inputElements(json: string): string[] {
  return json.startsWith('"') ? inputItems(json).map((item) => item.json) : listElements(json);
}

/**
 * The body with another value of a member, or with the member; the same bytes if it has this value.
 */
function withMember({ body, outline }: AskedRequest, name: string, json: string): Buffer {
  const member = outline.members.findLast(({ key }) => key === name);
  if (member === undefined) {
    const text = `${outline.members.length > 0 ? "," : ""}"${name}":${json}`;
    return Buffer.concat(applyEdits(body, [{ start: outline.end, end: outline.end, text }]));
  }
  if (sliceText(body, member) === json) return body;
  const { valueStart: start, valueEnd: end } = member;
  return Buffer.concat(applyEdits(body, [{ start, end, text: json }]));
}

/**
 * Replaces references to items that are stored here, and finds the vendor that stores the others.
 */
async function withReferences(
  store: ResponseStore,
  accountId: string,
  { request, input }: ReferringRequest,
): Promise<RecalledRequest> {
  const references = input.map((element) => referenceIn(element));
  const ids = new Set(references.flatMap((id) => id ?? []));
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
  // The size of each response includes the conversation before it.
  const storedBytes = Math.max(request.storedBytes, ...vendorItems.map(({ bytes }) => bytes));
  if (found.size === 0) return { ...request, vendor, storedBytes };
  const items = input.map((element, at) => found.get(references[at] ?? "")?.json ?? element);
  const body = withMember(outlined(request.body), "input", `[${items.join(",")}]`);
  return { ...request, body, vendor, storedBytes };
}

/** A request whose input may refer to items. */
interface ReferringRequest {
  readonly request: RecalledRequest;
  /** The elements of its input, each as JSON. */
  readonly input: readonly string[];
}

/** Like {@link referenceOf}. @param json an input element */
function referenceIn(json: string): string | undefined {
  return referenceOf(parseRecord(json));
}

/** The id that an input element refers to; undefined if it is an item itself. */
function referenceOf(item: unknown): string | undefined {
  return isReference(item) ? item.id : undefined;
}

/** Whether a body may have references: rarely a false positive, never a false negative. */
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

/** A finished reply, which may have to be stored. */
interface FinishedReply {
  readonly accountId: string;
  /** The public name of the model. */
  readonly model: string;
  /** The request as the client sent it. */
  readonly request: Uint8Array;
  /** The outline of `request`. */
  readonly outline: Outline;
  /** The last piece for the client: the complete reply, or the event that ends its stream. */
  readonly last: Buffer;
  /**
   * The vendor that stores the response itself; undefined if it was translated, and is stored here.
   */
  readonly vendor: string | undefined;
}

/**
 * Stores a response, or the vendor that stores it, before the client learns that it is complete.
 * Undefined if it is not to be stored, and nothing of it is parsed.
 */
export function storeResponse(
  store: ResponseStore,
  reply: FinishedReply,
): Promise<void> | undefined {
  const { request, outline } = reply;
  // The style's default is to store.
  return jsonOf({ body: asBuffer(request), outline }, "store") === "false"
    ? undefined
    : storeReply(store, reply);
}

async function storeReply(store: ResponseStore, reply: FinishedReply): Promise<void> {
  const { accountId, model, vendor, last } = reply;
  const json = endedResponse(last) || last.toString("utf8");
  const response = parseRecord(json);
  const responseId = response?.["id"];
  if (response === undefined || typeof responseId !== "string") return;
  const asked = { body: asBuffer(reply.request), outline: reply.outline };
  const input = jsonOf(asked, "input");
  if (vendor !== undefined) {
    const items = [...inputItems(input), ...outputItems(json)];
    const itemIds = items.flatMap(({ record }) =>
      referenceOf(record) ? [] : (itemId(record) ?? []),
    );
    const bytes = contextBytes(response);
    await store.remember({ accountId, responseId, model, vendor, itemIds, bytes });
    return;
  }
  const previous = valueOf(asked, "previous_response_id");
  await store.save({
    accountId,
    responseId,
    model,
    previousResponseId: typeof previous === "string" ? previous : undefined,
    response: Buffer.from(withoutSpace(json)),
    input,
  });
}

/**
 * The JSON of a member; empty if it is absent. Of duplicates the last one counts, as for
 * JSON.parse.
 */
function jsonOf({ body, outline }: AskedRequest, name: string): string {
  const member = outline.members.findLast(({ key }) => key === name);
  return member === undefined ? "" : sliceText(body, member);
}

/** A parsed member; undefined if it is absent. */
function valueOf(asked: AskedRequest, name: string): unknown {
  const json = jsonOf(asked, name);
  return json === "" ? undefined : JSON.parse(json);
}

/**
 * The bytes of text that a vendor reads when a request continues the response, by the vendor's own
 * count.
 */
export function contextBytes(response: JsonRecord): number {
  const usage = recordAt(response, "usage") ?? {};
  const tokens = (countAt(usage, "input_tokens") ?? 0) + (countAt(usage, "output_tokens") ?? 0);
  return tokens * bytesPerToken;
}

/**
 * Returns the response of the event that ends a stream, as JSON; empty if the bytes contain none.
 */
function endedResponse(bytes: Buffer): string {
  // Line breaks are escaped in JSON, so no event's text can look like the start of a line.
  const lines = bytes.toString("utf8").split(/\r\n|\n|\r/);
  const data = lines.findLast((line) => line.startsWith("data:") && endings.test(line)) ?? "";
  const event = data.slice("data:".length);
  return parseRecord(event) === undefined ? "" : memberOf(event, "response");
}

const endings = /"response\.(?:completed|incomplete)"/;

/** The conversation is stored by a vendor that does not serve the model. */
export function storedElsewhere(vendor: string): GatewayError {
  return new GatewayError(
    ErrorCode.INVALID_REQUEST,
    "The response that `previous_response_id` names is stored by a vendor that does not serve this model; use the model of that response, or send the conversation in `input`",
    { param: "previous_response_id", internal: `stored by ${vendor}` },
  );
}

/** The state that outlives a call. */
export interface CallState {
  readonly responses: ResponseStore;
  readonly reasoning: ReasoningCarry;
}
