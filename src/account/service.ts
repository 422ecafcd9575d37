/** The RPCs of accounts. */
import { limitWaitMsMax } from "../core/limits.ts";
import { create } from "@bufbuild/protobuf";
import {
  type Duration,
  durationFromMs,
  durationMs,
  timestampFromDate,
} from "@bufbuild/protobuf/wkt";
import type { ContextValues, ServiceImpl } from "@connectrpc/connect";
import { type FilterQuery, type InferEntity, LockMode } from "@mikro-orm/core";
import type { EntityManager, MikroORM } from "@mikro-orm/postgresql";
import { type Account, AccountSchema, AccountState } from "../../gen/uas/account/v1/account_pb.ts";
import type {
  AccountService,
  ListAccountsRequest,
  UpdateAccountRequest,
} from "../../gen/uas/account/v1/account_service_pb.ts";
import { KeyState } from "../../gen/uas/key/v1/key_pb.ts";
import type { Budget } from "../../gen/uas/type/v1/budget_pb.ts";
import { budgetFacts, type Budgets } from "../core/budgets.ts";
import { type Caller, callerKey } from "../core/caller.ts";
import type { Clock } from "../core/clock.ts";
import { mapDatabaseLoss } from "../core/database-lost.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { money } from "../core/money.ts";
import { changedFacts, type Facts, recordAction } from "../observe/operator-log.ts";
import { cutPage, readPage } from "../core/pagination.ts";
import { membersOf } from "../core/update-mask.ts";
import { rateColumns, rateMember } from "../core/rate-limits.ts";
import { isUuid } from "../core/uuid.ts";
import { invalid } from "../core/validation.ts";
import { transact } from "../db/pool/transaction.ts";
import { readPublicUrl } from "../http/public-url.ts";
import { readEmail } from "./email.ts";
import { AccountEntity } from "./entity.ts";
import { eraseAccountData } from "./erase.ts";
import { noSuchAccount, parseAccountId } from "./room.ts";

/** Options of {@link createAccountService}. */
interface AccountServiceOptions {
  readonly orm: MikroORM;
  readonly clock: Clock;
  /** The budgets of accounts; kept by billing. */
  readonly budgets: Budgets;
  /** Hosts that addresses of alerts may have although they are not public. None by default. */
  readonly allowHosts?: readonly string[];
  /** Returns the price lists that accounts can have. None by default. */
  readonly priceLists?: (() => ReadonlySet<string> | undefined) | undefined;
  /** Whether alerts can be sent by e-mail. Default true. */
  readonly canMail?: () => boolean;
}

/** The account room. */
export interface Accounts {
  /** The implementation of `uas.account.v1.AccountService`. */
  readonly service: ServiceImpl<typeof AccountService>;
  /**
   * Whether an account exists; false for a malformed id.
   *
   * @throws GatewayError SERVICE_UNAVAILABLE if the database is unreachable
   */
  readonly exists: (accountId: string) => Promise<boolean>;
  /** Reads an account for a caller. @throws GatewayError NOT_FOUND */
  readonly messageOf: (caller: Caller | undefined, accountId: string) => Promise<Account>;
}

type Rpcs = ServiceImpl<typeof AccountService>;

/** Creates the account room. */
export function createAccountService(options: AccountServiceOptions): Accounts {
  const { orm, budgets } = options;
  const find = (id: string): Promise<AccountRow | null> =>
    mapDatabaseLoss(orm.em.fork().findOne(AccountEntity, { id }));
  return {
    exists: async (accountId) => isUuid(accountId) && (await find(accountId)) !== null,
    async messageOf(caller, accountId) {
      const row = await find(accountId);
      if (row === null) throw noSuchAccount();
      return accountMessage(row, caller, (await budgets.of([row.id])).get(row.id));
    },
    service: { ...listAndCreate(options), ...getAndChange(options, find) },
  };
}

function listAndCreate({
  orm,
  clock,
  budgets,
}: AccountServiceOptions): Pick<Rpcs, "listAccounts" | "createAccount"> {
  return {
    async listAccounts(request, { values }) {
      const page = readPage(request, { isKey: isUuid });
      const where = searchFor(request, page.after);
      const order = { orderBy: { id: "desc" }, limit: page.limit + 1 } as const;
      const rows = await mapDatabaseLoss(orm.em.fork().find(AccountEntity, where, order));
      const { items, nextPageToken } = cutPage(page, rows, ({ id }) => id);
      const caller = values.get(callerKey);
      const found = await budgets.of(items.map(({ id }) => id));
      const accounts = items.map((row) => accountMessage(row, caller, found.get(row.id)));
      return { accounts, nextPageToken };
    },

    async createAccount(request, { values }) {
      const name = request.name.trim();
      const id = clock.newId();
      const row = await transact(orm, async (em) => {
        const created = em.create(AccountEntity, { id, name });
        await em.flush();
        const action = { action: "account.create", accountId: id, subject: id, after: { name } };
        await recordAction(em, values, action);
        return created;
      });
      return { account: accountMessage(row, values.get(callerKey)) };
    },
  };
}

function getAndChange(
  options: AccountServiceOptions,
  find: (id: string) => Promise<AccountRow | null>,
): Pick<
  Rpcs,
  | "getAccount"
  | "updateAccount"
  | "suspendAccount"
  | "resumeAccount"
  | "closeAccount"
  | "eraseAccount"
> {
  const { budgets } = options;
  const shown = async (row: AccountRow, caller: Caller | undefined): Promise<Account> =>
    accountMessage(row, caller, (await budgets.of([row.id])).get(row.id));
  const change = async (wanted: Change) => {
    const caller = wanted.values.get(callerKey);
    const row = await changeAccount(options, { ...wanted, id: parseAccountId(caller, wanted.id) });
    return { account: await shown(row, caller) };
  };
  return {
    async getAccount(request, { values }) {
      const caller = values.get(callerKey);
      const row = await find(parseAccountId(caller, request.accountId));
      if (row === null) throw noSuchAccount();
      return { account: await shown(row, caller) };
    },

    async updateAccount(request, { values }) {
      const caller = values.get(callerKey);
      const id = parseAccountId(caller, request.account?.accountId ?? "");
      const changed = {
        ...readAccountChange(request, caller, options),
        ...readAlertChange(request, options),
      };
      const wanted = membersOf(request.updateMask).has("budgets")
        ? budgets.check(request.account?.budgets ?? [])
        : undefined;
      const action = "account.update";
      return change({ id, values, action, changeOf: () => changed, budgets: wanted });
    },

    async suspendAccount({ accountId, reason }, { values }) {
      const changeOf = suspension(reason, options.clock);
      return change({ id: accountId, values, action: "account.suspend", changeOf, reason });
    },

    async resumeAccount({ accountId }, { values }) {
      const changeOf = (row: AccountRow): ChangedAccount => {
        if (row.state === AccountState.ERASED) throw accountIsErased();
        return resumption;
      };
      return change({ id: accountId, values, action: "account.resume", changeOf });
    },

    async closeAccount({ accountId }, { values }) {
      const changeOf = closing(options.clock);
      const also = (em: EntityManager, id: string) => em.execute(disableKeysSql, [id]);
      return change({ id: accountId, values, action: "account.close", changeOf, also });
    },

    async eraseAccount({ accountId }, { values }) {
      const action = "account.erase";
      return change({ id: accountId, values, action, changeOf: erasure, also: eraseAccountData });
    },
  };
}

interface Change {
  readonly id: string;
  readonly values: ContextValues;
  /** The name in the operator log, and the reason. */
  readonly action: string;
  readonly reason?: string;
  readonly changeOf: (row: AccountRow) => ChangedAccount;
  /** The new budgets. Unchanged by default. */
  readonly budgets?: readonly Budget[] | undefined;
  /** Changes other tables in the same transaction. Nothing by default. */
  readonly also?: ((em: EntityManager, id: string) => Promise<unknown>) | undefined;
}

/** Changes an account under its row lock, so that concurrent changes see each other. */
function changeAccount(
  { orm, budgets }: AccountServiceOptions,
  change: Change,
): Promise<AccountRow> {
  const { id, values, action, reason, budgets: wanted } = change;
  return transact(orm, async (em) => {
    const lock = { lockMode: LockMode.PESSIMISTIC_WRITE } as const;
    const row = await em.findOne(AccountEntity, { id }, lock);
    if (row === null) throw noSuchAccount();
    const present = wanted && ((await budgets.of([id])).get(id) ?? []);
    const before = { ...factsOf(row), ...budgetFacts(present) };
    Object.assign(row, change.changeOf(row));
    await em.flush();
    await change.also?.(em, id);
    const whole = changedFacts(before, { ...factsOf(row), ...budgetFacts(wanted) });
    const changed = row.state === AccountState.ERASED ? {} : whole;
    await recordAction(em, values, { action, accountId: id, subject: id, ...changed, reason });
    if (wanted) await budgets.set(em, { accountId: id, ownerId: id, budgets: wanted });
    return row;
  });
}

/** The changeable facts of an account, for the operator log. */
function factsOf(row: AccountRow): Facts {
  const { name, discountBp, priceList, lowBalanceThreshold, state, suspendReason } = row;
  const { alertUrl, alertEmails, rpm, tpm, concurrency, limitWaitMs } = row;
  const alerts = { lowBalanceThreshold, alertUrl, alertEmails };
  const limits = { rpm, tpm, concurrency, limitWaitMs };
  return { name, discountBp, priceList, ...alerts, ...limits, state, suspendReason };
}

/** Changed members of an account and their new values. */
type ChangedAccount = Partial<
  Pick<
    AccountRow,
    | "name"
    | "discountBp"
    | "priceList"
    | "lowBalanceThreshold"
    | "alertUrl"
    | "alertEmails"
    | "rpm"
    | "tpm"
    | "concurrency"
    | "limitWaitMs"
    | "state"
    | "suspendReason"
    | "suspendTime"
  >
>;

/**
 * Reads the changes of an UpdateAccount request.
 *
 * @throws GatewayError ACCESS_DENIED if a session changes the discount or the limits of its account
 */
function readAccountChange(
  { account, updateMask }: UpdateAccountRequest,
  caller: Caller | undefined,
  { priceLists = () => undefined }: Pick<AccountServiceOptions, "priceLists">,
): ChangedAccount {
  const members = membersOf(updateMask);
  for (const member of ["discount_bp", "price_list", "rate_limits", "limit_wait"]) {
    if (members.has(member) && caller?.kind !== "operator") throw onlyOperator(member);
  }
  return {
    ...(members.has("name") && { name: account?.name.trim() ?? "" }),
    ...(members.has("rate_limits") && rateColumns(account?.rateLimits)),
    ...(members.has("limit_wait") && { limitWaitMs: readLimitWait(account?.limitWait) }),
    ...(members.has("discount_bp") && { discountBp: account?.discountBp ?? 0 }),
    ...(members.has("price_list") && {
      priceList: readPriceList(account?.priceList ?? "", priceLists()),
    }),
    ...(members.has("low_balance_threshold") && {
      lowBalanceThreshold: account?.lowBalanceThreshold?.amountNanos ?? null,
    }),
  };
}

/** @throws GatewayError INVALID_REQUEST if the configuration has no such price list */
function readPriceList(name: string, lists: ReadonlySet<string> = new Set()): string {
  if (name === "" || lists.has(name)) return name;
  const have = lists.size === 0 ? "none" : [...lists].join(", ");
  throw invalid("price_list", `there is no price list ${name} (have: ${have})`);
}

/**
 * In milliseconds; null for the value of the installation.
 *
 * @throws GatewayError INVALID_REQUEST
 */
function readLimitWait(wait: Duration | undefined): number | null {
  if (wait === undefined) return null;
  const waitMs = durationMs(wait);
  if (waitMs >= 0 && waitMs <= limitWaitMsMax) return waitMs;
  throw invalid("limit_wait", `limit_wait must be 0 to ${limitWaitMsMax / 1_000} seconds`);
}

/**
 * Reads the new recipients of alerts.
 *
 * @throws GatewayError INVALID_REQUEST
 */
function readAlertChange(
  { account, updateMask }: UpdateAccountRequest,
  { allowHosts, canMail = () => true }: Pick<AccountServiceOptions, "allowHosts" | "canMail">,
): ChangedAccount {
  const members = membersOf(updateMask);
  const url = account?.alertUrl ?? "";
  const emails = new Set((account?.alertEmails ?? []).map(parseEmail));
  if (members.has("alert_emails") && emails.size > 0 && !canMail()) throw noMail();
  return {
    ...(members.has("alert_url") && { alertUrl: url === "" ? null : parseUrl(url, allowHosts) }),
    ...(members.has("alert_emails") && { alertEmails: emails.size === 0 ? null : [...emails] }),
  };
}

function noMail(): GatewayError {
  const text =
    "alert_emails cannot be used: this gateway has no mail server. Set alert_url, or ask the operator to add smtp to uas.yaml";
  return invalid("alert_emails", text);
}

function parseUrl(text: string, allowHosts?: readonly string[]): string {
  const read = readPublicUrl(text, allowHosts);
  if ("problem" in read) throw invalid("alert_url", `alert_url ${read.problem}`);
  return read.url.href;
}

function parseEmail(text: string): string {
  const email = readEmail(text);
  if (email !== undefined) return email;
  const told = "alert_emails must be e-mail addresses, each written as name@example.com";
  throw invalid("alert_emails", told);
}

/**
 * The change of closing an account; repeated closings keep the first time.
 *
 * @throws GatewayError INVALID_REQUEST for an erased account
 */
function closing(clock: Clock): (row: AccountRow) => ChangedAccount {
  return ({ state, suspendTime }) => {
    if (state === AccountState.ERASED) throw accountIsErased();
    const isClosed = state === AccountState.CLOSED;
    return {
      state: AccountState.CLOSED,
      suspendReason: null,
      suspendTime: (isClosed && suspendTime) || new Date(clock.now()),
    };
  };
}

const disableKeysSql = `update api_key set state = ${KeyState.DISABLED}
  where account_id = ? and state = ${KeyState.ENABLED}`;

/** The change of erasing an account. @throws GatewayError CONFLICT if it is not closed */
function erasure({ state }: AccountRow): ChangedAccount {
  if (state !== AccountState.CLOSED && state !== AccountState.ERASED) {
    const text = "only a closed account can be erased: close it first (uas account close)";
    throw new GatewayError(ErrorCode.CONFLICT, text);
  }
  return {
    name: "erased",
    state: AccountState.ERASED,
    suspendReason: null,
    alertUrl: null,
    alertEmails: null,
  };
}

function accountIsErased(): GatewayError {
  return new GatewayError(ErrorCode.CONFLICT, "the account is erased, which is final");
}

/** The change of a suspension; repeated suspensions keep the first time. */
function suspension(reason: string, clock: Clock): (row: AccountRow) => ChangedAccount {
  const suspendReason = reason.trim();
  return ({ state, suspendTime }) => {
    if (state === AccountState.CLOSED || state === AccountState.ERASED) throw accountIsClosed();
    return {
      state: AccountState.SUSPENDED,
      suspendReason,
      suspendTime: suspendTime ?? new Date(clock.now()),
    };
  };
}

function accountIsClosed(): GatewayError {
  const text = "the account is closed, so its calls are refused already";
  return new GatewayError(ErrorCode.CONFLICT, text);
}

/** The change of a resumption. */
const resumption: ChangedAccount = {
  state: AccountState.ACTIVE,
  suspendReason: null,
  suspendTime: null,
};

function onlyOperator(member: string): GatewayError {
  const text = `Access denied: ${member} is set by an operator`;
  return new GatewayError(ErrorCode.ACCESS_DENIED, text, { param: "update_mask" });
}

/** The accounts of a page that match the search. */
function searchFor(
  { query, state }: ListAccountsRequest,
  after: string | undefined,
): FilterQuery<AccountRow> {
  const wanted = query.trim();
  const id = wanted.toLowerCase();
  const like = `%${wanted.replaceAll(/[\\%_]/g, "\\$&")}%`;
  return {
    $and: [
      ...(after === undefined ? [] : [{ id: { $lt: after } }]),
      ...(state === AccountState.UNSPECIFIED ? [] : [{ state }]),
      ...(wanted === "" ? [] : [isUuid(id) ? { id } : { name: { $ilike: like } }]),
    ],
  };
}

/** A stored account. */
type AccountRow = InferEntity<typeof AccountEntity>;

/**
 * Converts an account for a caller. Only operators see the reason of a suspension.
 *
 * @param budgets none by default
 */
function accountMessage(
  row: AccountRow,
  caller: Caller | undefined,
  budgets: readonly Budget[] = [],
): Account {
  const { suspendReason, suspendTime, lowBalanceThreshold, limitWaitMs } = row;
  return create(AccountSchema, {
    accountId: row.id,
    name: row.name,
    createTime: timestampFromDate(row.createTime),
    state: row.state as AccountState,
    suspendReason: (caller?.kind === "operator" && suspendReason) || "",
    ...(suspendTime && { suspendTime: timestampFromDate(suspendTime) }),
    discountBp: row.discountBp,
    priceList: row.priceList,
    budgets: [...budgets],
    ...rateMember(row),
    ...(limitWaitMs != null && { limitWait: durationFromMs(limitWaitMs) }),
    alertUrl: row.alertUrl ?? "",
    alertEmails: row.alertEmails ?? [],
    ...(lowBalanceThreshold != null && { lowBalanceThreshold: money(lowBalanceThreshold) }),
  });
}
