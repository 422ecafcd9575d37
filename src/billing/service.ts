/**
 * The RPCs of BillingService. The access option of each RPC is checked before; the account is
 * checked here.
 */
import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { Pool, PoolClient } from "pg";
import { LedgerKind, TopUpSource } from "../../gen/uas/billing/v1/billing_pb.ts";
import {
  AcceptLedgerResponseSchema,
  AdjustBalanceResponseSchema,
  AuditLedgerResponseSchema,
  type BillingService,
  GetBalanceResponseSchema,
  GetCreditsResponseSchema,
  ListBalancesResponseSchema,
  type ListLedgerEntriesRequest,
  ListLedgerEntriesResponseSchema,
  RefundResponseSchema,
  TopUpResponseSchema,
} from "../../gen/uas/billing/v1/billing_service_pb.ts";
import type { Config } from "../config/config.ts";
import { callerKey } from "../core/caller.ts";
import { admitCaller, noSuchAccount } from "../core/caller-rules.ts";
import type { Clock } from "../core/clock.ts";
import { mapDatabaseLoss } from "../core/database-lost.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { formatUsd, money } from "../core/money.ts";
import { actionValues, recordActionOn } from "../observe/operator-log.ts";
import { cutPage, readPage } from "../core/pagination.ts";
import { isUuid } from "../core/uuid.ts";
import { present } from "../core/validation.ts";
import { firstId } from "../db/partition.ts";
import { type Queryable, withLossMapping } from "../db/pool/queryable.ts";
import { Where } from "../db/where.ts";
import { momentOf } from "./calls/range.ts";
import { Auditor, type AuditReport } from "./audit/auditor.ts";
import { book, type Booking, kindOf, type OnLowBalance } from "./ledger/booking.ts";
import type { Checkpoint } from "./audit/checkpoint.ts";
import { balanceMessage, type BalanceRow, entryMessage, type EntryRow } from "./message.ts";
import { parseAccount } from "./scope.ts";
import { createPriceRpcs } from "./prices/price-rpcs.ts";

interface BillingServiceOptions {
  /** The plain pool of the database. */
  readonly pool: Pool;
  readonly clock: Clock;
  /** Whether the account exists, suspended or not. Provided by the account room. */
  readonly accountExists: (accountId: string) => Promise<boolean>;
  /** Its models are read for each request. Default: no models. */
  readonly config?: Pick<Config, "models">;
  /** The connections of audits, which take long. Default: `pool`. */
  readonly auditPool?: Pool;
  /** Called when a booking takes an account below its threshold. Default: no callback. */
  readonly onLowBalance?: OnLowBalance;
}

const sql = {
  balance: "select available, held from balance where account_id = $1",
  balances: "select account_id, available, held from balance where account_id = any($1::uuid[])",
  credits:
    "select coalesce((select available + held from balance where account_id = $1), 0) as left, " +
    "coalesce((select sum(spent) from key_spend where account_id = $1), 0)::bigint as spent",
  accountOfCall: "select account_id from call where id = $1",
} as const;

type Rpcs = ServiceImpl<typeof BillingService>;

/** Creates the implementation of `uas.billing.v1.BillingService`. */
export function createBillingService(options: BillingServiceOptions): Rpcs {
  const pool = withLossMapping(options.pool);
  const { config = { models: new Map() } } = options;
  return {
    ...moneyRpcs({ ...options, pool }),
    ...auditRpcs(new Auditor(options.auditPool ?? options.pool)),
    ...balanceRpcs(pool),
    ...listRpcs(pool),
    ...createPriceRpcs({ pool, clock: options.clock, config }),
  };
}

interface MoneyOptions extends Omit<BillingServiceOptions, "pool"> {
  readonly pool: Queryable;
}

function moneyRpcs({
  pool,
  clock,
  accountExists,
  onLowBalance,
}: MoneyOptions): Pick<Rpcs, "topUp" | "refund" | "adjustBalance"> {
  const bookOne = async (action: string, booking: Booking, { values }: HandlerContext) => {
    const { accountId, callId, amountNanos, reference, reason } = booking;
    if (!(await accountExists(accountId))) throw noSuchAccount();
    const subject = callId ?? accountId;
    const after = { amount: formatUsd(amountNanos), reference };
    const audit = actionValues(values, { action, accountId, subject, after, reason });
    const { balance, replayed } = await book(
      pool,
      { ...booking, txnId: clock.newId() },
      onLowBalance,
      audit,
    );
    return { balance: balanceMessage(accountId, balance), replayed };
  };
  return {
    async topUp(request, context) {
      const action = request.source === TopUpSource.PROMO ? "money.grant" : "money.top_up";
      const booking = {
        kind: kindOf(request.source),
        accountId: parseAccount(request.accountId, context),
        amountNanos: present(request.amount).amountNanos,
        reference: request.reference,
      };
      return create(TopUpResponseSchema, await bookOne(action, booking, context));
    },

    async refund(request, context) {
      const { callId } = request;
      const accountId = request.accountId || (await accountOfCall(pool, callId));
      const booking = {
        kind: LedgerKind.REFUND,
        accountId: parseAccount(accountId, context),
        callId,
        amountNanos: present(request.amount).amountNanos,
        reference: request.reference,
      };
      return create(RefundResponseSchema, await bookOne("money.refund", booking, context));
    },

    async adjustBalance(request, context) {
      const booking = {
        kind: LedgerKind.ADJUSTMENT,
        accountId: parseAccount(request.accountId, context),
        amountNanos: present(request.amount).amountNanos,
        reason: request.reason.trim(),
        reference: request.reference,
      };
      return create(AdjustBalanceResponseSchema, await bookOne("money.adjust", booking, context));
    },
  };
}

/** Maximum wait of an audit on demand for a running one. */
const auditWaitMs = 60 * 1_000;

function auditRpcs(auditor: Auditor): Pick<Rpcs, "auditLedger" | "acceptLedger"> {
  const options = { waitMs: auditWaitMs };
  return {
    async auditLedger({ full, expect }) {
      const expected = expect && { n: Number(expect.number), hash: expect.hash };
      const run = full
        ? auditor.runFull({ ...options, expected })
        : auditor.run({ ...options, expected });
      return create(AuditLedgerResponseSchema, reportMessage(await mapDatabaseLoss(run)));
    },

    async acceptLedger(request, { values }) {
      const reason = request.reason.trim();
      const record = (client: PoolClient, { n, hash, accepted }: Checkpoint): Promise<void> => {
        const subject = n.toString();
        const after = { hash, breaches: accepted?.breaches };
        return recordActionOn(client, values, { action: "ledger.accept", subject, after, reason });
      };
      const checkpoint = await mapDatabaseLoss(auditor.accept(reason, { ...options, record }));
      if (checkpoint === undefined) throw auditRuns();
      return create(AcceptLedgerResponseSchema, { checkpoint: checkpointMessage(checkpoint) });
    },
  };
}

function reportMessage(report: AuditReport | undefined) {
  if (report === undefined) throw auditRuns();
  const { breaches, checkpoint, isComplete } = report;
  return {
    findings: [...breaches],
    complete: isComplete,
    ...(checkpoint.n > 0 && { checkpoint: checkpointMessage(checkpoint) }),
  };
}

function checkpointMessage({ n, time, entries, hash, sums }: Checkpoint) {
  return {
    number: BigInt(n),
    createTime: timestampFromDate(new Date(time)),
    entries: BigInt(entries),
    balances: money(BigInt(sums["1"] ?? 0)),
    hash,
  };
}

function auditRuns(): GatewayError {
  const text = "another process is auditing the ledger; try again in a minute";
  return new GatewayError(ErrorCode.SERVICE_UNAVAILABLE, text);
}

/** One statement reads both, so that a charge is in both or in none. */
interface CreditsRow {
  readonly left: string;
  readonly spent: string;
}

function balanceRpcs(pool: Queryable): Pick<Rpcs, "getBalance" | "getCredits" | "listBalances"> {
  return {
    async getBalance(request, context) {
      const accountId = parseAccount(request.accountId, context);
      const { rows } = await pool.query<BalanceRow>(sql.balance, [accountId]);
      return create(GetBalanceResponseSchema, { balance: balanceMessage(accountId, rows[0]) });
    },

    async getCredits(_, { values }) {
      const told = "Send an API key of the account whose credits to read";
      const { accountId } = admitCaller(values.get(callerKey), told);
      const { rows } = await pool.query<CreditsRow>(sql.credits, [accountId]);
      const balance = BigInt(rows[0]?.left ?? 0);
      const spent = BigInt(rows[0]?.spent ?? 0);
      const totals = { totalCredits: money(balance + spent), totalUsage: money(spent) };
      return create(GetCreditsResponseSchema, totals);
    },

    async listBalances({ accountIds }, context) {
      const ids = accountIds.map((accountId) => parseAccount(accountId, context));
      const { rows } = await pool.query<BalanceRow & { account_id: string }>(sql.balances, [ids]);
      const found = new Map(rows.map((row) => [row.account_id, row]));
      return create(ListBalancesResponseSchema, {
        balances: ids.map((id) => balanceMessage(id, found.get(id))),
      });
    },
  };
}

/** @throws GatewayError NOT_FOUND if there is no such call */
async function accountOfCall(pool: Queryable, callId: string): Promise<string> {
  const { rows } = await pool.query<{ account_id: string }>(sql.accountOfCall, [callId]);
  if (rows[0] !== undefined) return rows[0].account_id;
  throw new GatewayError(ErrorCode.NOT_FOUND, "there is no such call: check call_id", {
    param: "call_id",
  });
}

function listRpcs(pool: Queryable): Pick<Rpcs, "listLedgerEntries"> {
  return {
    async listLedgerEntries(request, context) {
      return create(ListLedgerEntriesResponseSchema, await listEntries(pool, request, context));
    },
  };
}

const select =
  "select e.txn_id, e.kind, e.amount, e.reference, e.create_time, e.balance_after, b.reason " +
  // Not from the view ledger_entry: these rows come in the order of an index.
  "from (select id as txn_id, account_id, 1::smallint as account, 2::smallint as kind, -paid as amount, " +
  "null::text as reference, create_time, balance_after from ledger_charge union all " +
  "select txn_id, account_id, account, kind, amount, reference, create_time, balance_after from ledger_side) e " +
  "left join booking b on b.account_id = e.account_id and b.reference = e.reference";

/**
 * Reads a page of ledger entries. @throws GatewayError INVALID_REQUEST; NOT_FOUND if the account is
 * not the caller's
 */
async function listEntries(
  pool: Queryable,
  request: ListLedgerEntriesRequest,
  context: Pick<HandlerContext, "values">,
) {
  const accountId = parseAccount(request.accountId, context);
  const page = readPage(request, { isKey: isUuid });
  const where = new Where()
    .also("e.account = 1 and e.amount <> 0")
    .and("e.account_id = ?", accountId);
  addKinds(where, request.kinds);
  const { fromTime, toTime } = request;
  where
    .and("e.txn_id >= ?", fromTime && firstId(new Date(momentOf(fromTime))))
    .and("e.txn_id < ?", toTime && firstId(new Date(momentOf(toTime))))
    .and("e.txn_id < ?", page.after);
  const limit = where.value(page.limit + 1);
  const text = `${select} where ${where.text} order by e.txn_id desc limit ${limit}`;
  const { rows } = await pool.query<EntryRow>(text, where.values);
  const { items, nextPageToken } = cutPage(page, rows, (row) => row.txn_id);
  return { entries: items.map(entryMessage), nextPageToken };
}

function addKinds(where: Where, kinds: readonly LedgerKind[]): void {
  if (kinds.length === 0) return;
  if (!kinds.includes(LedgerKind.CHARGE)) where.also(`e.kind <> ${LedgerKind.CHARGE}`);
  where.and("e.kind = any(?::smallint[])", kinds);
}
