/** The RPCs of billing. Who may call which is checked before; which account, is checked here. */
import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { LedgerKind } from "../../gen/uas/billing/v1/billing_pb.ts";
import {
  AuditLedgerResponseSchema,
  type BillingService,
  FindCallsResponseSchema,
  GetBalanceResponseSchema,
  ListCallsResponseSchema,
  ListLedgerEntriesResponseSchema,
  RefundResponseSchema,
  TopUpResponseSchema,
} from "../../gen/uas/billing/v1/billing_service_pb.ts";
import { callerKey } from "../caller.ts";
import { ErrorCode, GatewayError } from "../errors.ts";
import { auditLedger } from "./audit.ts";
import { book, parseAmount, parseReference } from "./booking.ts";
import {
  balanceMessage,
  type BalanceRow,
  callMessage,
  entryMessage,
  type EntryRow,
  type StoredCallRow,
} from "./message.ts";
import { cutPage, invalid, parseId, parsePage } from "./page.ts";
import { answering, type Queryable } from "./queryable.ts";

/** What {@link createBillingService} needs. */
export interface BillingServiceOptions {
  /** The plain pool of the database. */
  readonly pool: Queryable;
  /** Whether there is such an account, also a suspended one. The account room knows. */
  readonly accountExists: (accountId: string) => Promise<boolean>;
}

/** Every id is below it: the position before the first page. */
const topId = "ffffffff-ffff-ffff-ffff-ffffffffffff";

const sql = {
  balance: "select available, held from balance where account_id = $1",
  entries:
    "select txn_id, kind, amount, reference, create_time from ledger_entry " +
    "where account = 1 and account_id = $1 and txn_id < $2 order by txn_id desc limit $3",
  calls: "select * from call where account_id = $1 and id < $2 order by id desc limit $3",
  callsByRequest: "select * from call where request_id = $1 and id < $2 order by id desc limit $3",
  callsByRequestOfAccount:
    "select * from call where request_id = $1 and id < $2 and account_id = $4 " +
    "order by id desc limit $3",
} as const;

/** Makes the implementation of `uas.billing.v1.BillingService`. */
export function createBillingService(
  options: BillingServiceOptions,
): ServiceImpl<typeof BillingService> {
  const pool = answering(options.pool);
  return {
    async getBalance(request, context) {
      const accountId = parseAccount(request.accountId, context);
      const { rows } = await pool.query<BalanceRow>(sql.balance, [accountId]);
      return create(GetBalanceResponseSchema, { balance: balanceMessage(accountId, rows[0]) });
    },

    async topUp(request, context) {
      const accountId = parseAccount(request.accountId, context);
      const amountNanos = parseAmount(request.amount);
      const reference = parseReference(request.reference);
      if (!(await options.accountExists(accountId))) throw noSuchAccount();
      const kind = LedgerKind.TOP_UP;
      const booking = { kind, accountId, amountNanos, reference, callId: undefined };
      const { balance, replayed } = await book(pool, booking);
      return create(TopUpResponseSchema, { balance: balanceMessage(accountId, balance), replayed });
    },

    async refund(request, context) {
      const accountId = parseAccount(request.accountId, context);
      const callId = parseId("call_id", request.callId);
      const amountNanos = parseAmount(request.amount);
      const reference = parseReference(request.reference);
      if (!(await options.accountExists(accountId))) throw noSuchAccount();
      const kind = LedgerKind.REFUND;
      const { balance, replayed } = await book(pool, {
        kind,
        accountId,
        amountNanos,
        reference,
        callId,
      });
      return create(RefundResponseSchema, {
        balance: balanceMessage(accountId, balance),
        replayed,
      });
    },

    async listLedgerEntries(request, context) {
      const accountId = parseAccount(request.accountId, context);
      const page = parsePage(request);
      const values = [accountId, page.before ?? topId, page.size + 1];
      const { rows } = await pool.query<EntryRow>(sql.entries, values);
      const shown = cutPage(rows, page, (row) => row.txn_id);
      return create(ListLedgerEntriesResponseSchema, {
        entries: shown.rows.map(entryMessage),
        nextPageToken: shown.nextPageToken,
      });
    },

    async listCalls(request, context) {
      const accountId = parseAccount(request.accountId, context);
      const page = parsePage(request);
      const values = [accountId, page.before ?? topId, page.size + 1];
      const { rows } = await pool.query<StoredCallRow>(sql.calls, values);
      const shown = cutPage(rows, page, (row) => row.id);
      const { nextPageToken } = shown;
      return create(ListCallsResponseSchema, { calls: shown.rows.map(callMessage), nextPageToken });
    },

    async findCalls(request, context) {
      const accountId = parseScope(request.accountId, context);
      if (request.requestId === "") throw invalid("request_id", "request_id is required");
      const page = parsePage(request);
      // No call has one with a NUL in it, and the database would not even compare it.
      if (request.requestId.includes("\0")) return create(FindCallsResponseSchema);
      const values = [request.requestId, page.before ?? topId, page.size + 1];
      const { rows } = accountId
        ? await pool.query<StoredCallRow>(sql.callsByRequestOfAccount, [...values, accountId])
        : await pool.query<StoredCallRow>(sql.callsByRequest, values);
      const shown = cutPage(rows, page, (row) => row.id);
      const { nextPageToken } = shown;
      return create(FindCallsResponseSchema, { calls: shown.rows.map(callMessage), nextPageToken });
    },

    async auditLedger() {
      return create(AuditLedgerResponseSchema, { findings: await auditLedger(pool) });
    },
  };
}

/** The account of a request: an operator's may be any, a session's only its own (else NOT_FOUND). */
function parseAccount(accountId: string, context: Pick<HandlerContext, "values">): string {
  const id = parseId("account_id", accountId);
  const caller = context.values.get(callerKey);
  const isOwn = caller?.kind === "session" && caller.accountId === id;
  if (!isOwn && caller?.kind !== "operator") throw noSuchAccount();
  return id;
}

/** As {@link parseAccount}; `undefined`: all accounts, which only an operator may ask for. */
function parseScope(
  accountId: string,
  context: Pick<HandlerContext, "values">,
): string | undefined {
  if (accountId !== "") return parseAccount(accountId, context);
  if (context.values.get(callerKey)?.kind === "operator") return undefined;
  throw invalid("account_id", "account_id is required");
}

function noSuchAccount(): GatewayError {
  return new GatewayError(ErrorCode.NOT_FOUND, "there is no such account");
}
