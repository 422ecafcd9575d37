/**
 * Stores responses per account. Each row has its own input and the id of the response that it
 * continues. The conversation is assembled when a request continues it.
 */
import type { Pool } from "pg";
import {
  storedAccountBytesMax,
  storedResponseBytesMax,
  storedResponseTtlMs,
  bodyBytesMax,
  storedChainMax,
} from "../../core/limits.ts";
import { mapDatabaseLoss } from "../../core/database-lost.ts";
import type { RowOf } from "../../db/row.ts";
import type { StoredResponseEntity } from "./entity.ts";
import { chainTooLong, noSuchPrevious, notComplete } from "./failures.ts";
import {
  inputItems,
  itemId,
  itemsJson,
  type JsonItem,
  listedItems,
  isItem,
  isResponseId,
  outputItems,
  readItems,
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

/**
 * Stores responses. All methods throw GatewayError SERVICE_UNAVAILABLE if the database is
 * unreachable.
 */
export interface ResponseStore {
  /**
   * Finds the conversation that a request with this `previous_response_id` continues. Undefined if
   * the account has no such response. Call it before calling a vendor, which does not know the
   * gateway's accounts.
   *
   * @throws GatewayError INVALID_REQUEST, REQUEST_TOO_LARGE: see {@link readChain}
   */
  resolve(accountId: string, previousResponseId: string): Promise<StoredChain | undefined>;
  /**
   * Stores a response, durably: the client can use its id from then on. Replaces one with the same
   * id.
   *
   * @returns false if it is too long
   */
  save(response: NewResponse): Promise<boolean>;
  /** Stores that a vendor stores a response. @returns false if its id cannot be looked up */
  remember(response: VendorResponse): Promise<boolean>;
  /** Finds a response by its id; undefined if the account has none. */
  find(accountId: string, id: string): Promise<StoredResponse | undefined>;
  /** Deletes a response. @returns whether there was one */
  delete(accountId: string, id: string): Promise<boolean>;
  /**
   * Finds input and output items of the account's responses by their ids, for `item_reference`. Of
   * two items with the same id the newer is returned; unknown ids are missing.
   */
  findItems(accountId: string, ids: readonly string[]): Promise<ReadonlyMap<string, JsonItem>>;
  /** Finds which of these items vendors store for the account, as {@link remember} recorded. */
  findVendorItems(accountId: string, ids: readonly string[]): Promise<readonly VendorItems[]>;
  /**
   * Counts bytes that were written for an account by other means than {@link save}; {@link trim}
   * uses the count.
   */
  countWritten(accountId: string, bytes: number): void;
  /**
   * Deletes responses beyond the storage limit of each account that this process has written to.
   */
  trim(): Promise<void>;
}

/** A response to store. */
export interface NewResponse {
  readonly accountId: string;
  readonly responseId: string;
  /** The public name of the model. */
  readonly model: string;
  /** The continued response; undefined if there is none. */
  readonly previousResponseId: string | undefined;
  /** The response object as sent to the client: JSON in UTF-8. */
  readonly response: Uint8Array;
  /** The request's `input` as JSON: a text or items. Empty if it has none. */
  readonly input: string;
}

/** A response that a vendor stores. */
interface VendorResponse {
  readonly accountId: string;
  readonly responseId: string;
  /** The public name of the model. */
  readonly model: string;
  readonly vendor: string;
  /** The ids of its items, which later requests may refer to. */
  readonly itemIds: readonly string[];
  /** The bytes of text that the vendor reads when a request continues it: its input and output. */
  readonly bytes: number;
}

/** Items of one response that a vendor stores. */
interface VendorItems {
  readonly vendor: string;
  readonly itemIds: readonly string[];
  /** {@link VendorResponse.bytes} of the response that has the items. */
  readonly bytes: number;
}

/** A stored response: here, or at a vendor. */
export type StoredResponse =
  | {
      readonly kind: "here";
      /** The response object as sent to the client: JSON in UTF-8. */
      readonly response: Buffer;
      /** The request's own items. */
      readonly input: readonly JsonItem[];
      /** Present only for background responses. */
      readonly background?: StoredBackground;
    }
  | { readonly kind: "vendor"; readonly vendor: string; readonly model: string };

/** The stored facts of a background response. */
export interface StoredBackground {
  readonly taskId: string;
  /** Whether it is incomplete: the stored response then only repeats the request. */
  readonly isPending: boolean;
  /** The vendor's own copy and its id. Absent if the vendor has none. */
  readonly vendorCopy?: { readonly vendor: string; readonly responseId: string };
}

/** Options of {@link createResponseStore}. */
interface ResponseStoreOptions {
  readonly pool: Pool;
  /** Storage limit of an account. Default `storedAccountBytesMax`; tests lower it. */
  readonly accountBytesMax?: number;
}

/** Creates a store over a database. */
export function createResponseStore(options: ResponseStoreOptions): ResponseStore {
  return new PostgresResponseStore(options);
}

/** A process trims an account after it has written this share of the account's limit. */
const trimShare = 1 / 16;

type Row = RowOf<
  typeof StoredResponseEntity,
  "id" | "vendor" | "model" | "response" | "input" | "task_id" | "vendor_id"
> & { readonly is_pending: boolean };

class PostgresResponseStore implements ResponseStore {
  readonly #pool: Pool;
  readonly #accountBytesMax: number;
  /** Bytes written since the last trim, by account. */
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
    const input = Buffer.from(itemsJson(items));
    const bytes = response.length + input.length;
    if (bytes > storedResponseBytesMax || !isResponseId(responseId)) return false;
    const output = outputItems(Buffer.from(response).toString());
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
    const items = readItems(input.toString());
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
  ): Promise<ReadonlyMap<string, JsonItem>> {
    const requested = new Set(ids.filter(isResponseId));
    const found = new Map<string, JsonItem>();
    if (requested.size === 0) return found;
    for (const row of await this.#run(itemsSql, [accountId, [...requested]])) {
      for (const item of itemsOf(row)) {
        const id = itemId(item.record);
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

function itemsOf({ id, response, input }: Row): readonly JsonItem[] {
  if (response === null || input === null) return [];
  const output = outputItems(response.toString());
  return [...listedItems(readItems(input.toString()), id), ...output].filter(isItem);
}

function backgroundIn(row: Row): { readonly background?: StoredBackground } {
  const { task_id: taskId, is_pending: isPending, vendor, vendor_id: responseId } = row;
  if (taskId === null) return {};
  const copy = responseId === null ? {} : { vendorCopy: { vendor, responseId } };
  return { background: { taskId, isPending, ...copy } };
}

/** The conversation that a request continues. */
type StoredChain = HereChain | VendorChain;

/** A conversation that is stored here. */
interface HereChain {
  readonly kind: "here";
  /** The public name of the model of the last response. */
  readonly model: string;
  /**
   * Input and output of each response, in order, to be sent before the new input. Reasoning is
   * included as the client got it.
   */
  readonly items: readonly JsonItem[];
}

/** A conversation that a vendor stores: only that vendor can continue it, by the id alone. */
interface VendorChain {
  readonly kind: "vendor";
  /** The public name of the model of the last response. */
  readonly model: string;
  readonly vendor: string;
  /** The vendor's id of the last response. */
  readonly responseId: string;
  /** The bytes of text that the vendor reads of it. */
  readonly bytes: number;
}

interface ChainRow {
  readonly id: string;
  readonly previous_id: string | null;
  readonly depth: number;
  /** Bytes of this response and the later ones. */
  readonly total: string;
  readonly vendor: string;
  readonly vendor_id: string | null;
  readonly is_pending: boolean;
  readonly model: string;
  readonly input: Buffer | null;
  readonly response: Buffer | null;
}

/**
 * First the ids, then the bodies of the needed rows: the recursion would copy a body at each step.
 */
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
 * Reads the conversation that ends with a response. Undefined if the account has no response with
 * this id.
 *
 * @throws GatewayError INVALID_REQUEST if a response of it was deleted or has expired, or the last
 * one is not complete; REQUEST_TOO_LARGE if it exceeds the size limit of a request;
 * SERVICE_UNAVAILABLE
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

function chainItems({ id, input, response }: ChainRow): readonly JsonItem[] {
  // Items that a vendor stores cannot be sent to another vendor.
  if (input === null || response === null) throw noSuchPrevious(id);
  return [...readItems(input.toString()), ...outputItems(response.toString())];
}
