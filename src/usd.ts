/** Amounts of money as the contract carries them. */
import { create } from "@bufbuild/protobuf";
import { type Money, MoneySchema } from "../gen/uas/type/v1/money_pb.ts";
import { ErrorCode, GatewayError } from "./errors.ts";

/** The only currency of this version. */
export const currency = "USD";

/** An amount in nano-USD as Money. */
export function money(amountNanos: bigint): Money {
  return create(MoneySchema, { currencyCode: currency, amountNanos });
}

/**
 * Reads an amount of a request, in nano-USD.
 *
 * @throws GatewayError INVALID_REQUEST where it is missing or not in USD
 */
export function parseMoney(param: string, amount: Money | undefined): bigint {
  if (amount === undefined) throw badAmount(param, `${param} is required`);
  if (amount.currencyCode !== "" && amount.currencyCode !== currency) {
    throw badAmount(param, `${param} must be in ${currency}`);
  }
  return amount.amountNanos;
}

/** As {@link parseMoney}. @throws GatewayError INVALID_REQUEST also where it is not more than zero */
export function parsePositiveMoney(param: string, amount: Money | undefined): bigint {
  const amountNanos = parseMoney(param, amount);
  if (amountNanos <= 0n) throw badAmount(param, `${param} must be more than zero`);
  return amountNanos;
}

function badAmount(param: string, message: string): GatewayError {
  return new GatewayError(ErrorCode.INVALID_REQUEST, message, { param });
}
