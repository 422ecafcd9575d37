/** The statements of claims.ts. Prepared SQL: see there. */

/**
 * $1: account, $2: key, $3: fingerprint, $4: call, $5: request id, $6: process, $7: time to live in
 * milliseconds. Changes nothing if a call has the key.
 */
export const claim = `
insert into idempotent_call as i
    (account_id, key, fingerprint, call_id, request_id, node_id, expires_at)
  values ($1, $2, $3, $4, $5, $6, now() + $7 * interval '1 ms')
  on conflict (account_id, key) do update set
    fingerprint = excluded.fingerprint, call_id = excluded.call_id,
    request_id = excluded.request_id, node_id = excluded.node_id, is_ended = false,
    sealed = null, bytes = 0, expires_at = excluded.expires_at
    where i.expires_at < now()`;

/**
 * $3: this process. It is alive, also before its first heartbeat. A hold and its record change
 * places in one transaction, so one statement sees either.
 */
export const find = `
select i.fingerprint, i.call_id, i.request_id, i.is_ended, i.sealed,
    exists (select from open_hold h where h.id = i.call_id) as is_held,
    (select c.cost from call c where c.id = i.call_id) as cost,
    i.node_id = $3 or exists (select from node n where n.id = i.node_id and n.ended is null) as is_alive
  from idempotent_call i where i.account_id = $1 and i.key = $2`;

/** As {@link claim}; $8: the call that has the key. */
export const takeOver = `
update idempotent_call set fingerprint = $3, call_id = $4, request_id = $5, node_id = $6,
    expires_at = now() + $7 * interval '1 ms'
  where account_id = $1 and key = $2 and call_id = $8 and not is_ended`;

/** $3: call, $4: reply, $5: its length. */
export const keep = `
update idempotent_call set is_ended = true, sealed = $4, bytes = $5
  where account_id = $1 and key = $2 and call_id = $3`;

/** $3: call. */
export const release = `
delete from idempotent_call where account_id = $1 and key = $2 and call_id = $3`;

/** Deletes replies beyond an account's limit, $2; their keys stay. */
export const trim = `
update idempotent_call i set sealed = null, bytes = 0 from (
    select key, sum(bytes) over (order by expires_at desc, key) as kept
      from idempotent_call where account_id = $1 and bytes > 0) s
  where i.account_id = $1 and i.key = s.key and i.bytes > 0 and s.kept > $2`;

export const expire = `delete from idempotent_call where expires_at < now()`;
