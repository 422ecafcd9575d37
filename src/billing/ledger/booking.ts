/**
 * Books top-ups, grants, refunds and corrections, each once per account and reference (R-MON-9).
 */
import { LedgerKind, TopUpSource } from "../../../gen/uas/billing/v1/billing_pb.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { currency, formatUsd } from "../../core/money.ts";
import { withAction } from "../../observe/operator-log.ts";
import { invalid } from "../../core/validation.ts";
import type { BalanceRow } from "../message.ts";
import type { Queryable } from "../../db/pool/queryable.ts";
import { newId } from "../../core/uuid.ts";

/** Money to book on an account. */
export interface Booking {
  readonly kind: BookingKind;
  /**
   * The id of its transaction, a UUIDv7: it begins with the time of the booking. Default: by the
   * process's own clock.
   */
  readonly txnId?: string;
  readonly accountId: string;
  /** Negative only if a correction takes money away. */
  readonly amountNanos: bigint;
  readonly reference: string;
  /** The charge that a refund reverses. Default: none. */
  readonly callId?: string | undefined;
  /** Reason of a correction. Default: none. */
  readonly reason?: string | undefined;
}

/** The kinds of ledger entries that are not charges of calls. */
export type BookingKind =
  | typeof LedgerKind.TOP_UP
  | typeof LedgerKind.REFUND
  | typeof LedgerKind.ADJUSTMENT
  | typeof LedgerKind.PROMO;

/** The ledger kind of added money. */
export function kindOf(source: TopUpSource): BookingKind {
  return source === TopUpSource.PROMO ? LedgerKind.PROMO : LedgerKind.TOP_UP;
}

/** The source of money of a ledger kind: the reverse of {@link kindOf}. */
export function sourceOf(kind: number): TopUpSource {
  return kind === LedgerKind.PROMO ? TopUpSource.PROMO : TopUpSource.PAYMENT;
}

/** The result of a booking. */
export interface Booked {
  readonly balance: BalanceRow;
  /** Whether it had been booked before; then nothing changed. */
  readonly replayed: boolean;
}

/**
 * Called with an account that has fallen below its threshold, and its balance: available plus held.
 */
export type OnLowBalance = (accountId: string, balanceNanos: bigint) => void;

interface BookRow extends BalanceRow {
  readonly verdict: "booked" | "replayed" | "reused" | "missing" | "exceeded" | "short" | "full";
  readonly remaining: string | null;
  readonly low_balance: string | null;
}

const bookSql =
  "select verdict, available, held, remaining, low_balance " +
  "from ledger_book($1, $2::smallint, $3, $4, $5, $6, $7)";

/**
 * Books money.
 *
 * @param onLowBalance called if the booking takes the account below its threshold. Default: no
 * callback
 * @param audit values of an operator-log entry (`actionValues`), written in the same statement.
 * Default: none
 * @throws GatewayError IDEMPOTENCY_KEY_REUSED if the reference was used for another booking;
 * NOT_FOUND if the account has no such charge; INSUFFICIENT_BALANCE if the rest of the charge, or
 * the available balance, is lower.
 */
export async function book(
  pool: Queryable,
  booking: Booking,
  onLowBalance?: OnLowBalance,
  audit?: unknown[],
): Promise<Booked> {
  const { kind, accountId, amountNanos, reference, callId = null, reason = null } = booking;
  const { txnId = newId() } = booking;
  const values = [accountId, kind, txnId, amountNanos.toString(), reference, callId, reason];
  const { text, parameters } = withAction(bookSql, { parameters: values, values: audit });
  const { rows } = await pool.query<BookRow>(text, parameters);
  const row = rows[0];
  if (!row) throw new Error("ledger_book returned no row");
  if (row.low_balance !== null) onLowBalance?.(accountId, BigInt(row.low_balance));
  if (row.verdict === "booked") return { balance: row, replayed: false };
  if (row.verdict === "replayed") return { balance: row, replayed: true };
  throw refusal(row.verdict, booking, row.remaining ?? "0");
}

function refusal(
  verdict: Exclude<BookRow["verdict"], "booked" | "replayed">,
  { reference, callId, amountNanos }: Booking,
  remaining: string,
): GatewayError {
  if (verdict === "missing") {
    return new GatewayError(
      ErrorCode.NOT_FOUND,
      `the account has no charge ${callId ?? ""}; nothing was refunded`,
    );
  }
  if (verdict === "exceeded") {
    return new GatewayError(
      ErrorCode.INSUFFICIENT_BALANCE,
      `a refund of ${formatUsd(amountNanos)} ${currency} exceeds what is left of the charge: ` +
        `${formatUsd(BigInt(remaining))} ${currency}`,
      { param: "amount" },
    );
  }
  if (verdict === "short") {
    return new GatewayError(
      ErrorCode.INSUFFICIENT_BALANCE,
      `taking ${formatUsd(-amountNanos)} ${currency} exceeds the available balance: ` +
        `${formatUsd(BigInt(remaining))} ${currency}`,
      { param: "amount" },
    );
  }
  if (verdict === "full") {
    return invalid("amount", "the balance would exceed what an account can hold");
  }
  return new GatewayError(
    ErrorCode.IDEMPOTENCY_KEY_REUSED,
    `reference "${reference}" was used for another booking of this account; choose a new one`,
    { param: "reference" },
  );
}
