/** A conversation that goes on from a stored response: its items, from the first response on. */
import type { Pool } from "pg";
import { bodyBytesMax, storedChainMax } from "../../config/limits.ts";
import { answering } from "../../database-lost.ts";
import { type JsonRecord, parseRecord, recordsAt } from "../../dialect/json.ts";
import { chainTooLong, noSuchPrevious, notComplete } from "./failures.ts";
import { inputItems } from "./input-items.ts";

/** What a request goes on from. */
export type StoredChain = HereChain | VendorChain;

/** A conversation that is kept here. */
export interface HereChain {
  readonly kind: "here";
  /** The public name of the model that answered last. */
  readonly model: string;
  /** Input and output of each response, in order: to be put before the new input. Reasoning is among them,
   * as the client got it. */
  readonly items: readonly JsonRecord[];
}

/** A conversation that a vendor keeps: only that vendor can continue it, and does so by the id alone. */
export interface VendorChain {
  readonly kind: "vendor";
  /** The public name of the model that answered last. */
  readonly model: string;
  readonly vendor: string;
  /** What the vendor calls it. */
  readonly responseId: string;
  /** What the vendor will read of it, in bytes of text. */
  readonly bytes: number;
}

interface Link {
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
export async function readChain(
  pool: Pool,
  accountId: string,
  id: string,
): Promise<StoredChain | undefined> {
  const { rows } = await answering(
    pool.query<Link>(chainSql, [accountId, id, storedChainMax, bodyBytesMax]),
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
  return { kind: "here", model, items: rows.flatMap(itemsOf) };
}

function itemsOf({ id, input, response }: Link): readonly JsonRecord[] {
  // What a vendor keeps cannot be repeated to another one.
  if (input === null || response === null) throw noSuchPrevious(id);
  const output = recordsAt(parseRecord(response.toString()) ?? {}, "output");
  return [...inputItems(JSON.parse(input.toString())), ...output];
}
