/** What stands behind the `?` of the operator's addresses. */
import {
  type CallSearch,
  defined,
  type DeliverySearch,
  oneOf,
  readCallSearch,
  readDeliverySearch,
  text,
} from "../search.ts";

type Raw = Readonly<Record<string, unknown>>;

/** The states of accounts that a list can be of. */
export const accountStates = ["active", "suspended"] as const;

/** Which accounts are listed. Absent: not searched by it. */
export interface AccountSearch {
  readonly q?: string;
  readonly state?: (typeof accountStates)[number];
}

/** Reads {@link AccountSearch}. */
export function readAccountSearch({ q, state }: Raw): AccountSearch {
  return defined({ q: text(q), state: oneOf(state, accountStates) });
}

/** The filters of the log of all calls. */
export interface AllCallSearch extends CallSearch {
  /** Only calls of this account. */
  readonly account?: string;
}

/** Reads {@link AllCallSearch}. */
export function readAllCallSearch(raw: Raw): AllCallSearch {
  return { ...readCallSearch(raw), ...defined({ account: text(raw["account"]) }) };
}

/** The filters of the deliveries of all accounts. */
export interface AllDeliverySearch extends DeliverySearch {
  /** Only deliveries of this account. */
  readonly account?: string;
}

/** Reads {@link AllDeliverySearch}. */
export function readAllDeliverySearch(raw: Raw): AllDeliverySearch {
  return { ...readDeliverySearch(raw), ...defined({ account: text(raw["account"]) }) };
}

/** The states of redeem codes, in the order of the contract. */
export const codeStates = ["open", "redeemed", "revoked", "expired"] as const;

/** Which redeem codes are listed. */
export interface CodeSearch {
  readonly state?: (typeof codeStates)[number];
}

/** Reads {@link CodeSearch}. */
export function readCodeSearch({ state }: Raw): CodeSearch {
  return defined({ state: oneOf(state, codeStates) });
}

/** The rooms whose actions are written down. */
export const auditRooms = [
  "account",
  "money",
  "redeem",
  "key",
  "webhook",
  "user",
  "session",
] as const;

/** Which entries of the audit log are listed. */
export interface AuditSearch {
  readonly room?: (typeof auditRooms)[number];
  readonly account?: string;
}

/** Reads {@link AuditSearch}. */
export function readAuditSearch({ room, account }: Raw): AuditSearch {
  return defined({ room: oneOf(room, auditRooms), account: text(account) });
}
