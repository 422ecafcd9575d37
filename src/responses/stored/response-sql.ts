/** The SQL statements of stored responses. */
import { bodyBytesMax, storedChainMax, storedResponseTtlMs } from "../../core/limits.ts";

/**
 * Tolerance of expiry. Earlier responses of a conversation expire with its newest one; within the
 * tolerance a turn does not update them all.
 */
const extendSlackMs = 24 * 60 * 60 * 1_000;

/**
 * Stores a response. $1: account, $2: id, $3: model, $4: the continued response, $5: response, $6:
 * input, $7: item ids, $8: bytes, $9: time to live in milliseconds, $10: task, $11: the exchange
 * that generates it.
 *
 * Skips rows that another turn is extending: waiting for them could deadlock.
 */
export const saveSql = `
with recursive chain as (
  select id, previous_id, 1 as depth from stored_response where account_id = $1 and id = $4
  union all
  select r.id, r.previous_id, c.depth + 1
    from chain c join stored_response r on r.account_id = $1 and r.id = c.previous_id
    where c.depth < ${storedChainMax}
), extended as (
  update stored_response set expires_at = now() + $9 * interval '1 ms'
    where account_id = $1 and id in (
      select r.id from stored_response r
        where r.account_id = $1 and r.id in (select id from chain) and r.id <> $2
          and r.expires_at < now() + ${storedResponseTtlMs - extendSlackMs} * interval '1 ms'
        order by r.id for update skip locked)
)
insert into stored_response
    (account_id, id, model, vendor, previous_id, response, input, item_ids, bytes, expires_at, task_id, request)
  values ($1, $2, $3, '', $4, $5, $6, $7, $8, now() + $9 * interval '1 ms', $10, $11)
  on conflict (account_id, id) do update set
    model = excluded.model, vendor = '', previous_id = excluded.previous_id,
    response = excluded.response, input = excluded.input, item_ids = excluded.item_ids,
    bytes = excluded.bytes, create_time = now(), expires_at = excluded.expires_at`;

/**
 * Stores a complete background response, unless it was deleted meanwhile. $1: account, $2: id, $3:
 * response, $4: item ids, $5: bytes, $6: time to live in milliseconds, $7: the vendor that stores
 * it too, $8: the vendor's id.
 */
export const finishSql = `
update stored_response set response = $3, item_ids = $4, bytes = $5, vendor = $7, vendor_id = $8,
    request = null, expires_at = now() + $6 * interval '1 ms'
  where account_id = $1 and id = $2 and request is not null`;

/** Finds the exchange that generates a pending response. */
export const requestSql = `
select request, response, input from stored_response
  where account_id = $1 and id = $2 and request is not null`;

export const rememberSql = `
insert into stored_response (account_id, id, model, vendor, item_ids, bytes, expires_at)
  values ($1, $2, $3, $4, $5, $6, now() + $7 * interval '1 ms')
  on conflict (account_id, id) do update set
    model = excluded.model, vendor = excluded.vendor, previous_id = null, response = null,
    input = null, item_ids = excluded.item_ids, bytes = excluded.bytes, create_time = now(),
    expires_at = excluded.expires_at`;

export const findSql = `
select vendor, model, response, input, task_id, request is not null as is_pending, vendor_id
  from stored_response where account_id = $1 and id = $2 and expires_at > now()`;

/** Finds items, up to the size limit of a request: they become part of one. */
export const itemsSql = `
select r.id, r.response, r.input from stored_response r join (
  select id, sum(bytes) over (order by create_time desc, id) as total from stored_response
    where account_id = $1 and vendor = '' and item_ids && $2 and expires_at > now()) s
    on s.id = r.id
  where r.account_id = $1 and s.total <= ${bodyBytesMax}
  order by r.create_time`;

export const vendorItemsSql = `
select vendor, item_ids as "itemIds", bytes from stored_response
  where account_id = $1 and vendor <> '' and item_ids && $2 and expires_at > now()`;

export const trimSql = `
delete from stored_response r using (
  select id, sum(bytes) over (order by expires_at desc, id) as kept
    from stored_response where account_id = $1 and vendor = '') s
  where r.account_id = $1 and r.id = s.id and s.kept > $2`;
