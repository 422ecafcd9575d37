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
import { cutPage, type Page, readPage } from "../page-token.ts";
import { isUuid } from "../uuid.ts";
import { auditLedger } from "./audit.ts";
import { book, type Booking, parseAmount, parseReference } from "./booking.ts";
import { invalid, parseId } from "./invalid.ts";
import {
  balanceMessage,
  type BalanceRow,
  callMessage,
  entryMessage,
  type EntryRow,
  type StoredCallRow,
} from "./message.ts";
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

/** $1 and $2: the page. */
const sql = {
  balance: "select available, held from balance where account_id = $1",
  entries:
    "select txn_id, kind, amount, reference, create_time from ledger_entry " +
    "where txn_id < $1 and account = 1 and account_id = $3 order by txn_id desc limit $2",
  calls: "select * from call where id < $1 and account_id = $3 order by id desc limit $2",
  callsByRequest: "select * from call where id < $1 and request_id = $3 order by id desc limit $2",
  callsByRequestOfAccount:
    "select * from call where id < $1 and request_id = $3 and account_id = $4 " +
    "order by id desc limit $2",
} as const;

type Rpcs = ServiceImpl<typeof BillingService>;

/** Makes the implementation of `uas.billing.v1.BillingService`. */
export function createBillingService(options: BillingServiceOptions): Rpcs {
  const pool = answering(options.pool);
  return { ...moneyRpcs(pool, options.accountExists), ...listRpcs(pool) };
}

function moneyRpcs(
  pool: Queryable,
  accountExists: BillingServiceOptions["accountExists"],
): Pick<Rpcs, "getBalance" | "topUp" | "refund" | "auditLedger"> {
  const bookOne = async (booking: Booking) => {
    const { accountId } = booking;
    if (!(await accountExists(accountId))) throw noSuchAccount();
    const { balance, replayed } = await book(pool, booking);
    return { balance: balanceMessage(accountId, balance), replayed };
  };
  return {
    async getBalance(request, context) {
      const accountId = parseAccount(request.accountId, context);
      const { rows } = await pool.query<BalanceRow>(sql.balance, [accountId]);
      return create(GetBalanceResponseSchema, { balance: balanceMessage(accountId, rows[0]) });
    },

    async topUp(request, context) {
      const booked = await bookOne({
        kind: LedgerKind.TOP_UP,
        accountId: parseAccount(request.accountId, context),
        amountNanos: parseAmount(request.amount),
        reference: parseReference(request.reference),
        callId: undefined,
      });
      return create(TopUpResponseSchema, booked);
    },

    async refund(request, context) {
      const booked = await bookOne({
        kind: LedgerKind.REFUND,
        accountId: parseAccount(request.accountId, context),
        callId: parseId("call_id", request.callId),
        amountNanos: parseAmount(request.amount),
        reference: parseReference(request.reference),
      });
      return create(RefundResponseSchema, booked);
    },

    async auditLedger() {
      return create(AuditLedgerResponseSchema, { findings: await auditLedger(pool) });
    },
  };
}

function listRpcs(pool: Queryable): Pick<Rpcs, "listLedgerEntries" | "listCalls" | "findCalls"> {
  const readCalls = async (page: Page, text: string, keys: readonly string[]) => {
    const values = [page.after ?? topId, page.limit + 1, ...keys];
    const { rows } = await pool.query<StoredCallRow>(text, values);
    const { items, nextPageToken } = cutPage(page, rows, (row) => row.id);
    return { calls: items.map(callMessage), nextPageToken };
  };
  return {
    async listLedgerEntries(request, context) {
      const accountId = parseAccount(request.accountId, context);
      const page = readPage(request, { isKey: isUuid });
      const values = [page.after ?? topId, page.limit + 1, accountId];
      const { rows } = await pool.query<EntryRow>(sql.entries, values);
      const { items, nextPageToken } = cutPage(page, rows, (row) => row.txn_id);
      const entries = items.map(entryMessage);
      return create(ListLedgerEntriesResponseSchema, { entries, nextPageToken });
    },

    async listCalls(request, context) {
      const accountId = parseAccount(request.accountId, context);
      const page = readPage(request, { isKey: isUuid });
      return create(ListCallsResponseSchema, await readCalls(page, sql.calls, [accountId]));
    },

    async findCalls(request, context) {
      const { requestId } = request;
      const accountId = parseScope(request.accountId, context);
      if (requestId === "") throw invalid("request_id", "request_id is required");
      const page = readPage(request, { isKey: isUuid });
      // No call has such an id, and the database would not even compare it.
      if (requestId.includes("\0")) return create(FindCallsResponseSchema);
      const found = accountId
        ? await readCalls(page, sql.callsByRequestOfAccount, [requestId, accountId])
        : await readCalls(page, sql.callsByRequest, [requestId]);
      return create(FindCallsResponseSchema, found);
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
