/**
 * Replies of the responses style, kept per account. Each one keeps its own input and the id of the response
 * that it continues; the conversation is put together when it goes on.
 */
import type { Pool } from "pg";
import {
  storedAccountBytesMax,
  storedResponseBytesMax,
  storedResponseTtlMs,
  bodyBytesMax,
  storedChainMax,
} from "../../config/limits.ts";
import { mapDatabaseLoss } from "../../core/database-lost.ts";
import type { RowOf } from "../../db/row.ts";
import type { StoredResponseEntity } from "../entity.ts";
import { parseRecord, recordsAt, type JsonRecord } from "../../dialect/json/value.ts";
import { chainTooLong, noSuchPrevious, notComplete } from "./failures.ts";
import {
  inputItems,
  itemId,
  listedItems,
  isItem,
  isResponseId,
  storedItemIds,
} from "./input-items.ts";
import {
  findSql,
  itemsSql,
  vendorItemsSql,
  rememberSql,
  saveSql,
  trimSql,
} from "./response-sql.ts";

/** Keeps responses. All methods throw GatewayError SERVICE_UNAVAILABLE where the database is away. */
export interface ResponseStore {
  /**
   * What a request with this `previous_response_id` goes on from. `undefined`: the account has no such
   * response. Ask before any vendor is: a vendor knows nothing of accounts.
   *
   * @throws GatewayError INVALID_REQUEST, REQUEST_TOO_LARGE: see {@link readChain}
   */
  resolve(accountId: string, previousResponseId: string): Promise<StoredChain | undefined>;
  /**
   * Keeps a response, durably: the client can use its id from then on. One by the same id is replaced.
   *
   * @returns false where it is too long to be kept
   */
  save(response: NewResponse): Promise<boolean>;
  /** Notes that a vendor keeps a response. @returns false where its id is none that can be asked for */
  remember(response: VendorResponse): Promise<boolean>;
  /** The response by an id; `undefined`: the account has none. */
  find(accountId: string, id: string): Promise<StoredResponse | undefined>;
  /** Deletes a response. @returns whether there was one */
  delete(accountId: string, id: string): Promise<boolean>;
  /** Items of the account's responses, input and output, by their ids: what `item_reference` refers to, also
   * in a conversation of {@link resolve}. Of two with the same id the newer; those that are not kept are
   * missing. */
  findItems(accountId: string, ids: readonly string[]): Promise<ReadonlyMap<string, JsonRecord>>;
  /** Which of these items the account's vendors keep, as {@link remember} was told. */
  findVendorItems(accountId: string, ids: readonly string[]): Promise<readonly VendorItems[]>;
  /** Counts what was written of an account by other means than {@link save}: see {@link trim}. */
  countWritten(accountId: string, bytes: number): void;
  /** Deletes what makes the accounts that this process wrote to exceed their limit, and forgets them. */
  trim(): Promise<void>;
}

/** A response to keep. */
export interface NewResponse {
  readonly accountId: string;
  readonly responseId: string;
  /** The public name of the model. */
  readonly model: string;
  /** The response that it continues; `undefined`: none. */
  readonly previousResponseId: string | undefined;
  /** The response object, as it was sent: JSON in UTF-8. */
  readonly response: Uint8Array;
  /** The request's own `input`, parsed: a text or items. */
  readonly input: unknown;
}

/** A response that a vendor keeps. */
interface VendorResponse {
  readonly accountId: string;
  readonly responseId: string;
  /** The public name of the model. */
  readonly model: string;
  readonly vendor: string;
  /** The ids of its items, which later requests may refer to. */
  readonly itemIds: readonly string[];
  /** What going on from it makes the vendor read: its input and output, in bytes of text. */
  readonly bytes: number;
}

/** Items of one response that a vendor keeps. */
interface VendorItems {
  readonly vendor: string;
  readonly itemIds: readonly string[];
  /** See {@link VendorResponse.bytes}: the items are a part of it. */
  readonly bytes: number;
}

/** A response that was found. */
export type StoredResponse =
  | {
      readonly kind: "here";
      /** As it was sent: JSON in UTF-8. */
      readonly response: Buffer;
      /** The request's own items. */
      readonly input: readonly JsonRecord[];
      /** Where it is made in the background, or was. Absent: it was waited for. */
      readonly background?: StoredBackground;
    }
  | { readonly kind: "vendor"; readonly vendor: string; readonly model: string };

/** What is known of a response that is made in the background. */
export interface StoredBackground {
  readonly taskId: string;
  /** Whether there is no response yet: what is kept only repeats the request. */
  readonly isPending: boolean;
  /** The vendor that keeps it too, and what that calls it. Absent: none does. */
  readonly vendorCopy?: { readonly vendor: string; readonly responseId: string };
}

/** What {@link createResponseStore} needs. */
interface ResponseStoreOptions {
  readonly pool: Pool;
  /** See `storedAccountBytesMax`; tests lower it. */
  readonly accountBytesMax?: number;
}

/** Makes a store over a database. */
export function createResponseStore(options: ResponseStoreOptions): ResponseStore {
  return new PostgresResponseStore(options);
}

/** The account's limit is looked after whenever a process has written this part of it. */
const trimShare = 1 / 16;

type Row = RowOf<
  typeof StoredResponseEntity,
  "id" | "vendor" | "model" | "response" | "input" | "task_id" | "vendor_id"
> & { readonly is_pending: boolean };

class PostgresResponseStore implements ResponseStore {
  readonly #pool: Pool;
  readonly #accountBytesMax: number;
  /** Bytes written since the limit was looked after, by account. */
  readonly #written = new Map<string, number>();

  constructor({ pool, accountBytesMax = storedAccountBytesMax }: ResponseStoreOptions) {
    this.#pool = pool;
    this.#accountBytesMax = accountBytesMax;
  }

  async resolve(accountId: string, previousResponseId: string): Promise<StoredChain | undefined> {
    if (!isResponseId(previousResponseId)) return undefined;
    return readChain(this.#pool, accountId, previousResponseId);
  }

  async save(saved: NewResponse): Promise<boolean> {
    const { accountId, responseId, model, previousResponseId = null, response } = saved;
    const items = inputItems(saved.input);
    const input = Buffer.from(JSON.stringify(items));
    const bytes = response.length + input.length;
    if (bytes > storedResponseBytesMax || !isResponseId(responseId)) return false;
    const output = recordsAt(parseRecord(Buffer.from(response).toString()) ?? {}, "output");
    const ids = storedItemIds([...listedItems(items, responseId), ...output]);
    const values = [accountId, responseId, model, previousResponseId, response, input];
    await this.#run(saveSql, [...values, ids, bytes, storedResponseTtlMs, null, null]);
    await this.#count(accountId, bytes);
    return true;
  }

  async remember(kept: VendorResponse): Promise<boolean> {
    const { accountId, responseId, model, vendor, itemIds, bytes } = kept;
    if (!isResponseId(responseId)) return false;
    const ids = [...new Set(itemIds)].filter(isResponseId);
    const size = Math.min(Math.ceil(bytes), 2 ** 31 - 1);
    const values = [accountId, responseId, model, vendor, ids, size, storedResponseTtlMs];
    await this.#run(rememberSql, values);
    return true;
  }

  async find(accountId: string, id: string): Promise<StoredResponse | undefined> {
    if (!isResponseId(id)) return undefined;
    const [row] = await this.#run(findSql, [accountId, id]);
    if (row === undefined) return undefined;
    const { vendor, model, response, input } = row;
    if (response === null || input === null) return { kind: "vendor", vendor, model };
    const items = inputItems(JSON.parse(input.toString()));
    return { kind: "here", response, input: items, ...backgroundIn(row) };
  }

  async delete(accountId: string, id: string): Promise<boolean> {
    if (!isResponseId(id)) return false;
    const text = "delete from stored_response where account_id = $1 and id = $2";
    const { rowCount } = await mapDatabaseLoss(this.#pool.query(text, [accountId, id]));
    return rowCount === 1;
  }

  async findItems(
    accountId: string,
    ids: readonly string[],
  ): Promise<ReadonlyMap<string, JsonRecord>> {
    const requested = new Set(ids.filter(isResponseId));
    const found = new Map<string, JsonRecord>();
    if (requested.size === 0) return found;
    for (const row of await this.#run(itemsSql, [accountId, [...requested]])) {
      for (const item of itemsOf(row)) {
        const id = itemId(item);
        if (id !== undefined && requested.has(id)) found.set(id, item);
      }
    }
    return found;
  }

  async findVendorItems(
    accountId: string,
    ids: readonly string[],
  ): Promise<readonly VendorItems[]> {
    const requested = [...new Set(ids.filter(isResponseId))];
    if (requested.length === 0) return [];
    return (
      await mapDatabaseLoss(this.#pool.query<VendorItems>(vendorItemsSql, [accountId, requested]))
    ).rows;
  }

  async trim(): Promise<void> {
    const accounts = [...this.#written.keys()];
    for (const accountId of accounts) await this.#trimAccount(accountId);
  }

  countWritten(accountId: string, bytes: number): void {
    this.#written.set(accountId, (this.#written.get(accountId) ?? 0) + bytes);
  }

  async #count(accountId: string, bytes: number): Promise<void> {
    this.countWritten(accountId, bytes);
    const written = this.#written.get(accountId) ?? 0;
    if (written > this.#accountBytesMax * trimShare) await this.#trimAccount(accountId);
  }

  async #trimAccount(accountId: string): Promise<void> {
    this.#written.delete(accountId);
    await this.#run(trimSql, [accountId, this.#accountBytesMax]);
  }

  async #run(text: string, values: unknown[]): Promise<Row[]> {
    return (await mapDatabaseLoss(this.#pool.query<Row>(text, values))).rows;
  }
}

function itemsOf({ id, response, input }: Row): readonly JsonRecord[] {
  if (response === null || input === null) return [];
  const output = recordsAt(parseRecord(response.toString()) ?? {}, "output");
  return [...listedItems(inputItems(JSON.parse(input.toString())), id), ...output].filter(isItem);
}

function backgroundIn(row: Row): { readonly background?: StoredBackground } {
  const { task_id: taskId, is_pending: isPending, vendor, vendor_id: responseId } = row;
  if (taskId === null) return {};
  const vendorCopy = responseId === null ? {} : { keeper: { vendor, responseId } };
  return { background: { taskId, isPending, ...vendorCopy } };
}

/* A conversation that goes on from a stored response: its items, from the first response on. */

/** What a request goes on from. */
type StoredChain = HereChain | VendorChain;

/** A conversation that is kept here. */
interface HereChain {
  readonly kind: "here";
  /** The public name of the model that answered last. */
  readonly model: string;
  /** Input and output of each response, in order: to be put before the new input. Reasoning is among them,
   * as the client got it. */
  readonly items: readonly JsonRecord[];
}

/** A conversation that a vendor keeps: only that vendor can continue it, and does so by the id alone. */
interface VendorChain {
  readonly kind: "vendor";
  /** The public name of the model that answered last. */
  readonly model: string;
  readonly vendor: string;
  /** What the vendor calls it. */
  readonly responseId: string;
  /** What the vendor will read of it, in bytes of text. */
  readonly bytes: number;
}

interface ChainRow {
  readonly id: string;
  readonly previous_id: string | null;
  readonly depth: number;
  /** Bytes of this response and those after it. */
  readonly total: string;
  readonly vendor: string;
  readonly vendor_id: string | null;
  readonly is_pending: boolean;
  readonly model: string;
  readonly input: Buffer | null;
  readonly response: Buffer | null;
}

/** First the ids alone, then the bodies of those that count: a body in the recursion is copied each time. */
const chainSql = `
with recursive chain as (
  select id, previous_id, bytes::bigint as total, 1 as depth from stored_response
    where account_id = $1 and id = $2 and expires_at > now()
  union all
  select r.id, r.previous_id, c.total + r.bytes, c.depth + 1
    from chain c join stored_response r on r.account_id = $1 and r.id = c.previous_id
    where r.expires_at > now() and c.depth <= $3 and c.total <= $4
)
select c.depth, c.total, r.id, r.previous_id, r.vendor, r.model, r.vendor_id, r.request is not null as is_pending,
    case when c.depth <= $3 and c.total <= $4 then r.input end as input,
    case when c.depth <= $3 and c.total <= $4 then r.response end as response
  from chain c join stored_response r on r.account_id = $1 and r.id = c.id
  order by c.depth desc`;

/**
 * Reads the conversation that ends with a response. `undefined`: the account has none by that id.
 *
 * @throws GatewayError INVALID_REQUEST where a part of it was deleted or has expired, or its last response is not
 * made yet; REQUEST_TOO_LARGE where it is longer than a request may be, SERVICE_UNAVAILABLE
 */
async function readChain(
  pool: Pool,
  accountId: string,
  id: string,
): Promise<StoredChain | undefined> {
  const { rows } = await mapDatabaseLoss(
    pool.query<ChainRow>(chainSql, [accountId, id, storedChainMax, bodyBytesMax]),
  );
  const [first] = rows;
  const last = rows.at(-1);
  if (first === undefined || last === undefined) return undefined;
  const { model, vendor } = last;
  if (last.is_pending) throw notComplete(id);
  if (vendor !== "") {
    const responseId = last.vendor_id ?? id;
    return { kind: "vendor", model, vendor, responseId, bytes: Number(last.total) };
  }
  if (first.depth > storedChainMax || BigInt(first.total) > bodyBytesMax) throw chainTooLong();
  if (first.previous_id !== null) throw noSuchPrevious(first.previous_id);
  return { kind: "here", model, items: rows.flatMap(chainItems) };
}

function chainItems({ id, input, response }: ChainRow): readonly JsonRecord[] {
  // What a vendor keeps cannot be repeated to another one.
  if (input === null || response === null) throw noSuchPrevious(id);
  const output = recordsAt(parseRecord(response.toString()) ?? {}, "output");
  return [...inputItems(JSON.parse(input.toString())), ...output];
}
