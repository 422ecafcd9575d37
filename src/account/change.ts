/** What can be changed of an account, and by whom. */
import { type Account, AccountState } from "../../gen/uas/account/v1/account_pb.ts";
import type { UpdateAccountRequest } from "../../gen/uas/account/v1/account_service_pb.ts";
import type { Caller } from "../caller.ts";
import { ErrorCode, GatewayError } from "../errors.ts";
import { readUpdateMask } from "../field-mask.ts";
import { parseLine } from "../text-line.ts";
import { parsePositiveMoney } from "../usd.ts";
import { parseDisplayName } from "./display-name.ts";
import type { AccountRow } from "./message.ts";

/** Members of an account with their new values. */
export type ChangedAccount = Partial<
  Pick<
    AccountRow,
    "name" | "discountBp" | "lowBalanceThreshold" | "state" | "suspendReason" | "suspendTime"
  >
>;

const changeable = ["name", "discount_bp", "low_balance_threshold"] as const;

/** All of a price, in basis points. */
const discountBpMax = 10_000;

/** The longest reason, in characters. */
const reasonCharsMax = 500;

/**
 * Reads what an UpdateAccount request changes.
 *
 * @throws GatewayError INVALID_REQUEST; ACCESS_DENIED where the account's own session changes its discount
 */
export function readAccountChange(
  { account, updateMask }: UpdateAccountRequest,
  caller: Caller | undefined,
): ChangedAccount {
  const members = readUpdateMask(updateMask, changeable);
  if (members.has("discount_bp") && caller?.kind !== "operator") throw onlyOperator();
  return {
    ...(members.has("name") && { name: parseDisplayName(account?.name ?? "", 1) }),
    ...(members.has("discount_bp") && { discountBp: parseDiscount(account) }),
    ...(members.has("low_balance_threshold") && { lowBalanceThreshold: parseThreshold(account) }),
  };
}

/** What suspending changes; the time is that of the first of several. @throws GatewayError INVALID_REQUEST */
export function suspension(reason: string): (row: AccountRow) => ChangedAccount {
  const suspendReason = parseLine(reason, {
    param: "reason",
    charsMin: 1,
    charsMax: reasonCharsMax,
  });
  return ({ suspendTime }) => ({
    state: AccountState.SUSPENDED,
    suspendReason,
    suspendTime: suspendTime ?? new Date(),
  });
}

/** What resuming changes. */
export const resumption: ChangedAccount = {
  state: AccountState.ACTIVE,
  suspendReason: null,
  suspendTime: null,
};

function parseDiscount(account: Account | undefined): number {
  const discountBp = account?.discountBp ?? 0;
  if (discountBp >= 0 && discountBp <= discountBpMax) return discountBp;
  throw new GatewayError(
    ErrorCode.INVALID_REQUEST,
    `discount_bp is ${discountBp}: send 0 to ${discountBpMax} basis points, of which 100 are 1 %`,
    { param: "discount_bp" },
  );
}

function parseThreshold(account: Account | undefined): bigint | null {
  const threshold = account?.lowBalanceThreshold;
  return threshold === undefined ? null : parsePositiveMoney("low_balance_threshold", threshold);
}

function onlyOperator(): GatewayError {
  const text = "Access denied: discount_bp is set by an operator";
  return new GatewayError(ErrorCode.ACCESS_DENIED, text, { param: "update_mask" });
}
