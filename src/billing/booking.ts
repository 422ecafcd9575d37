/** Top-ups and refunds: money that moves once per account and reference (R-MON-9). */
import { randomUUIDv7 } from "node:crypto";
import { LedgerKind } from "../../gen/uas/billing/v1/billing_pb.ts";
import type { Money } from "../../gen/uas/type/v1/money_pb.ts";
import { ErrorCode, GatewayError } from "../errors.ts";
import { formatUsd, nanosPerUsd } from "../money.ts";
import { type BalanceRow, currency } from "./message.ts";
import { invalid } from "./invalid.ts";
import type { Queryable } from "./queryable.ts";

/** Money to book on an account. */
export interface Booking {
  readonly kind: typeof LedgerKind.TOP_UP | typeof LedgerKind.REFUND;
  readonly accountId: string;
  readonly amountNanos: bigint;
  readonly reference: string;
  /** The charge that a refund gives back; `undefined` for a top-up. */
  readonly callId: string | undefined;
}

/** What came of a booking. */
export interface Booked {
  readonly balance: BalanceRow;
  /** It had been booked before; nothing changed. */
  readonly replayed: boolean;
}

interface BookRow extends BalanceRow {
  readonly verdict: "booked" | "replayed" | "reused" | "missing" | "exceeded" | "full";
  readonly remaining: string | null;
}

/** The largest single booking in nano-USD: a million USD, so that a slip of the unit is noticed. */
export const bookingNanosMax = 1_000_000n * nanosPerUsd;

/** The longest reference in characters. */
const referenceCharsMax = 200;

/**
 * Books it.
 *
 * @throws GatewayError IDEMPOTENCY_KEY_REUSED where the reference stands for something else; NOT_FOUND
 * where the account has no such charge; INSUFFICIENT_BALANCE where less is left of the charge.
 */
export async function book(pool: Queryable, booking: Booking): Promise<Booked> {
  const { kind, accountId, amountNanos, reference, callId } = booking;
  const { rows } = await pool.query<BookRow>(
    "select verdict, available, held, remaining from ledger_book($1, $2::smallint, $3, $4, $5, $6)",
    [accountId, kind, randomUUIDv7(), amountNanos.toString(), reference, callId ?? null],
  );
  const row = rows[0];
  if (!row) throw new Error("ledger_book returned no row");
  if (row.verdict === "booked") return { balance: row, replayed: false };
  if (row.verdict === "replayed") return { balance: row, replayed: true };
  throw refusal(row.verdict, booking, row.remaining ?? "0");
}

/**
 * Checks the amount of a booking.
 *
 * @throws GatewayError INVALID_REQUEST where it is missing, not in USD, not positive or too large.
 */
export function parseAmount(amount: Money | undefined): bigint {
  if (!amount) throw invalid("amount", "amount is required");
  if (amount.currencyCode !== "" && amount.currencyCode !== currency) {
    throw invalid("amount", `amount must be in ${currency}`);
  }
  if (amount.amountNanos <= 0n) throw invalid("amount", "amount must be more than zero");
  if (amount.amountNanos > bookingNanosMax) {
    throw invalid("amount", `amount must be at most ${formatUsd(bookingNanosMax)} ${currency}`);
  }
  return amount.amountNanos;
}

/**
 * Checks the reference of a booking.
 *
 * @throws GatewayError INVALID_REQUEST where it is empty, too long or cannot be stored as text.
 */
export function parseReference(reference: string): string {
  const { length } = reference;
  if (length === 0 || length > referenceCharsMax) {
    throw invalid("reference", `reference must have 1 to ${referenceCharsMax} characters`);
  }
  if (reference.includes("\0") || !reference.isWellFormed()) {
    throw invalid("reference", "reference must be text without NUL characters");
  }
  return reference;
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
  if (verdict === "full") {
    return invalid("amount", "the balance would exceed what an account can hold");
  }
  return new GatewayError(
    ErrorCode.IDEMPOTENCY_KEY_REUSED,
    `reference "${reference}" was used for another booking of this account; choose a new one`,
    { param: "reference" },
  );
}
