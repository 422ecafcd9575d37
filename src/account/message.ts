import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { InferEntity } from "@mikro-orm/core";
import {
  type Account,
  AccountSchema,
  type AccountState,
} from "../../gen/uas/account/v1/account_pb.ts";
import type { Caller } from "../core/caller.ts";
import type { Budget } from "../../gen/uas/type/v1/budget_pb.ts";
import { money } from "../core/money.ts";
import { rateMember } from "../core/rate-limits.ts";
import type { AccountEntity } from "./entity.ts";

/** A stored account. */
export type AccountRow = InferEntity<typeof AccountEntity>;

/** Converts an account for a caller. Only operators see the reason of a suspension. @param budgets default: none */
export function accountMessage(
  row: AccountRow,
  caller: Caller | undefined,
  budgets: readonly Budget[] = [],
): Account {
  const { suspendReason, suspendTime, lowBalanceThreshold } = row;
  return create(AccountSchema, {
    accountId: row.id,
    name: row.name,
    createTime: timestampFromDate(row.createTime),
    state: row.state as AccountState,
    suspendReason: (caller?.kind === "operator" && suspendReason) || "",
    ...(suspendTime && { suspendTime: timestampFromDate(suspendTime) }),
    discountBp: row.discountBp,
    budgets: [...budgets],
    ...rateMember(row),
    alertUrl: row.alertUrl ?? "",
    alertEmails: row.alertEmails ?? [],
    ...(lowBalanceThreshold != null && { lowBalanceThreshold: money(lowBalanceThreshold) }),
  });
}
