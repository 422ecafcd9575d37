/** Codes that are worth money. */

/**
 * Only a hash of the code is kept: whoever reads the database cannot spend it. kind: what it is booked as,
 * uas.billing.v1.LedgerKind; a payment (1) or a grant (5). account_id: who redeemed it.
 */
const redeemCode = `
create table "redeem_code" (
  "id" uuid not null,
  "code_hash" bytea not null,
  "hint" text not null,
  "kind" smallint not null,
  "amount" bigint not null,
  "note" text not null default '',
  "create_time" timestamptz not null default now(),
  "expire_time" timestamptz null,
  "revoke_time" timestamptz null,
  "redeem_time" timestamptz null,
  "account_id" uuid null,
  constraint "redeem_code_pkey" primary key ("id"),
  constraint "redeem_code_code_hash_unique" unique ("code_hash"),
  constraint "redeem_code_kind_check" check (kind in (1, 5)),
  constraint "redeem_code_amount_check" check (amount > 0),
  constraint "redeem_code_end_check" check (redeem_time is null or revoke_time is null)
)`;

/**
 * Books a code on an account, once. Verdicts: booked, replayed (this account has redeemed it before), unknown,
 * taken (by another account), revoked, expired, full (the balance would not fit). The code is locked before the
 * account, and nobody who holds an account's lock waits for a code.
 */
const redeem = `
create function ledger_redeem(
  p_account uuid, p_hash bytea, p_txn uuid,
  out verdict text, out id uuid, out kind smallint, out amount bigint,
  out available bigint, out held bigint, out low_balance bigint
) language plpgsql as $$
declare
  v_code redeem_code;
begin
  select * into v_code from redeem_code c where c.code_hash = p_hash for update;
  if not found then verdict := 'unknown'; return; end if;
  id := v_code.id;
  kind := v_code.kind;
  amount := v_code.amount;
  verdict := case when v_code.account_id <> p_account then 'taken'
    when v_code.revoke_time is not null then 'revoked'
    when v_code.account_id is null and v_code.expire_time <= clock_timestamp() then 'expired' end;
  if verdict is not null then return; end if;
  select b.verdict, b.available, b.held, b.low_balance into verdict, available, held, low_balance
    from ledger_book(p_account, v_code.kind, p_txn, v_code.amount, 'redeem ' || v_code.id, null, null) b;
  if verdict = 'booked' then
    update redeem_code c set account_id = p_account, redeem_time = clock_timestamp()
      where c.id = v_code.id;
  end if;
end $$`;

/** In the order of their creation. */
export const moneyStatements: readonly string[] = [redeemCode, redeem];
