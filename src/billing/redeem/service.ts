/** The RPCs of RedeemService: codes that are worth money. */
import { hash, randomBytes } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { timestampFromDate, timestampDate } from "@bufbuild/protobuf/wkt";
import type { ContextValues, ServiceImpl } from "@connectrpc/connect";
import { LockMode, type InferEntity } from "@mikro-orm/core";
import type { MikroORM } from "@mikro-orm/postgresql";
import { TopUpSource } from "../../../gen/uas/billing/v1/billing_pb.ts";
import {
  RedeemCodeSchema,
  RedeemCodeState,
  type RedeemCode,
} from "../../../gen/uas/billing/v1/redeem_pb.ts";
import type {
  RedeemService,
  CreateRedeemCodesRequest,
} from "../../../gen/uas/billing/v1/redeem_service_pb.ts";
import { noSuchAccount } from "../../core/caller-rules.ts";
import type { Clock } from "../../core/clock.ts";
import { mapDatabaseLoss } from "../../core/database-lost.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { formatUsd, money } from "../../core/money.ts";
import { actionValues, recordAction, withAction } from "../../observe/operator-log.ts";
import { cutPage, readPage } from "../../core/pagination.ts";
import { isUuid } from "../../core/uuid.ts";
import { invalid, present } from "../../core/validation.ts";
import { withLossMapping, type Queryable } from "../../db/pool/queryable.ts";
import { RedeemCodeEntity } from "../entity.ts";
import { kindOf, sourceOf } from "../ledger/booking.ts";
import { balanceMessage } from "../message.ts";
import { parseAccount } from "../scope.ts";

interface RedeemServiceOptions {
  readonly orm: MikroORM;
  /** The plain pool of the database. */
  readonly pool: Queryable;
  readonly clock: Clock;
  /** Whether the account exists. Provided by the account room. */
  readonly accountExists: (accountId: string) => Promise<boolean>;
}

type Rpcs = ServiceImpl<typeof RedeemService>;
type CodeRow = InferEntity<typeof RedeemCodeEntity>;

/** Creates the implementation of `uas.billing.v1.RedeemService`. */
export function createRedeemService(options: RedeemServiceOptions): Rpcs {
  return { ...operatorRpcs(options), redeem: redeemRpc(options) };
}

function operatorRpcs({ orm, clock }: RedeemServiceOptions): Omit<Rpcs, "redeem"> {
  return {
    async createRedeemCodes(request, { values }) {
      const wanted = codeRequest(request);
      const codes = Array.from({ length: wanted.count }, newRedeemCode);
      const rows = await mapDatabaseLoss(makeCodes(orm, { codes, wanted, values, clock }));
      return { codes, redeemCodes: rows.map((row) => codeMessage(row, clock)) };
    },

    async listRedeemCodes(request) {
      const page = readPage(request, { isKey: isUuid });
      const { accountId, state } = request;
      const conditions = [
        page.after === undefined ? {} : { id: { $lt: page.after } },
        accountId === "" ? {} : { accountId },
        conditionOf(state, new Date(clock.now())),
      ];
      const order = { orderBy: { id: "desc" }, limit: page.limit + 1 } as const;
      const em = orm.em.fork();
      const rows = await mapDatabaseLoss(em.find(RedeemCodeEntity, { $and: conditions }, order));
      const { items, nextPageToken } = cutPage(page, rows, ({ id }) => id);
      return { redeemCodes: items.map((row) => codeMessage(row, clock)), nextPageToken };
    },

    async revokeRedeemCode({ redeemCodeId }, { values }) {
      const row = await mapDatabaseLoss(revoke({ orm, clock }, redeemCodeId, values));
      return { redeemCode: codeMessage(row, clock) };
    },
  };
}

interface NewCodes {
  readonly codes: readonly string[];
  readonly wanted: CodeRequest;
  readonly values: ContextValues;
  readonly clock: Clock;
}

function makeCodes(orm: MikroORM, { codes, wanted, values, clock }: NewCodes): Promise<CodeRow[]> {
  const { amountNanos, source, note, expireTime } = wanted;
  return orm.em.fork().transactional(async (em) => {
    const rows = codes.map((code) =>
      em.create(RedeemCodeEntity, {
        id: clock.newId(),
        codeHash: redeemCodeHash(readRedeemCode(code) ?? ""),
        hint: redeemCodeHint(code),
        kind: kindOf(source),
        amount: amountNanos,
        note,
        expireTime,
      }),
    );
    await em.flush();
    for (const { id, hint } of rows) {
      const after = { amount: formatUsd(amountNanos), hint, note, expireTime };
      await recordAction(em, values, { action: "redeem.create", subject: id, after });
    }
    return rows;
  });
}

function revoke(
  { orm, clock }: Pick<RedeemServiceOptions, "orm" | "clock">,
  id: string,
  values: ContextValues,
): Promise<CodeRow> {
  return orm.em.fork().transactional(async (em) => {
    const lock = { lockMode: LockMode.PESSIMISTIC_WRITE } as const;
    const row = await em.findOne(RedeemCodeEntity, { id }, lock);
    if (row === null) throw noSuchCode("redeem_code_id");
    if (row.redeemTime != null) {
      const text = "this code has been redeemed: adjust the balance of the account instead";
      throw new GatewayError(ErrorCode.INVALID_REQUEST, text, { param: "redeem_code_id" });
    }
    if (row.revokeTime != null) return row;
    row.revokeTime = new Date(clock.now());
    await em.flush();
    const facts = { amount: formatUsd(row.amount), hint: row.hint };
    await recordAction(em, values, { action: "redeem.revoke", subject: id, before: facts });
    return row;
  });
}

interface RedeemedRow {
  readonly verdict: string;
  readonly amount: string;
  readonly available: string;
  readonly held: string;
}

function redeemRpc({ pool, clock, accountExists }: RedeemServiceOptions): Rpcs["redeem"] {
  const answered = withLossMapping(pool);
  return async (request, context) => {
    const accountId = parseAccount(request.accountId, context);
    const code = readRedeemCode(request.code);
    if (code === undefined) {
      throw invalid("code", "code has 20 letters and digits: check that none is missing");
    }
    if (!(await accountExists(accountId))) throw noSuchAccount();
    const txnId = clock.newId();
    const hint = redeemCodeHint(code);
    const action = { action: "redeem.use", accountId, subject: accountId, after: { hint } };
    const { text, parameters } = withAction(
      "select verdict, amount, available, held from ledger_redeem($1, $2, $3)",
      {
        parameters: [accountId, redeemCodeHash(code), txnId],
        values: actionValues(context.values, action),
      },
    );
    const [row] = (await answered.query<RedeemedRow>(text, parameters)).rows;
    if (row?.verdict === "full") {
      throw invalid("code", "the balance would exceed what an account can hold");
    }
    if (row?.verdict !== "booked" && row?.verdict !== "replayed") throw noSuchCode("code");
    const balance = balanceMessage(accountId, row);
    return { amount: money(BigInt(row.amount)), balance, replayed: row.verdict === "replayed" };
  };
}

function conditionOf(state: RedeemCodeState, now: Date) {
  const open = { redeemTime: null, revokeTime: null };
  if (state === RedeemCodeState.REDEEMED) return { redeemTime: { $ne: null } };
  if (state === RedeemCodeState.REVOKED) return { revokeTime: { $ne: null } };
  if (state === RedeemCodeState.EXPIRED) return { ...open, expireTime: { $lte: now } };
  if (state === RedeemCodeState.OPEN) {
    return { ...open, $or: [{ expireTime: null }, { expireTime: { $gt: now } }] };
  }
  return {};
}

function codeMessage(row: CodeRow, clock: Clock): RedeemCode {
  const { redeemTime, revokeTime, expireTime } = row;
  const endTime = redeemTime ?? revokeTime;
  return create(RedeemCodeSchema, {
    redeemCodeId: row.id,
    hint: row.hint,
    amount: money(row.amount),
    source: sourceOf(row.kind),
    note: row.note,
    state: stateOf(row, clock),
    createTime: timestampFromDate(row.createTime),
    ...(expireTime && { expireTime: timestampFromDate(expireTime) }),
    ...(endTime && { endTime: timestampFromDate(endTime) }),
    accountId: row.accountId ?? "",
  });
}

function stateOf({ redeemTime, revokeTime, expireTime }: CodeRow, clock: Clock): RedeemCodeState {
  if (redeemTime != null) return RedeemCodeState.REDEEMED;
  if (revokeTime != null) return RedeemCodeState.REVOKED;
  const isOver = expireTime != null && expireTime.getTime() <= clock.now();
  return isOver ? RedeemCodeState.EXPIRED : RedeemCodeState.OPEN;
}

/**
 * 404, equal for an unknown code, one that another account has redeemed, and one that is revoked or
 * expired.
 */
function noSuchCode(param: string): GatewayError {
  const text = "there is no such code, or it cannot be redeemed any more: check it";
  return new GatewayError(ErrorCode.NOT_FOUND, text, { param });
}

/** A checked request for new codes. */
interface CodeRequest {
  readonly amountNanos: bigint;
  readonly count: number;
  readonly source: TopUpSource;
  readonly note: string;
  /** Null: never. */
  readonly expireTime: Date | null;
}

function codeRequest({
  amount,
  count,
  source,
  note,
  expireTime,
}: CreateRedeemCodesRequest): CodeRequest {
  return {
    amountNanos: present(amount).amountNanos,
    count: count || 1,
    source: source || TopUpSource.PROMO,
    note: note.trim(),
    expireTime: expireTime === undefined ? null : timestampDate(expireTime),
  };
}

/** Crockford's base 32, without letters that resemble digits. */
const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** 20 characters of 5 bits: 100 random bits cannot be guessed, even with a million open codes. */
const codeChars = 20;

const groupChars = 4;

/** Makes a code: `7Q2M-K0VX-9D3T-PWHA-64ZE`. */
export function newRedeemCode(): string {
  const chars = Array.from(randomBytes(codeChars), (byte) => alphabet.charAt(byte % 32));
  return (chars.join("").match(new RegExp(`.{${groupChars}}`, "g")) ?? []).join("-");
}

/** Normalizes a typed code: upper case, without dashes; undefined if the text is no code. */
export function readRedeemCode(text: string): string | undefined {
  // Spaces and dashes are ignored; O, I and L are read as the digits that they resemble.
  const plain = text.slice(0, 100).toUpperCase().replaceAll(/[\s-]/g, "");
  const read = plain.replaceAll("O", "0").replaceAll(/[IL]/g, "1");
  return new RegExp(`^[${alphabet}]{${codeChars}}$`).test(read) ? read : undefined;
}

/** The stored hash of a code. A plain hash is enough for 100 random bits. */
function redeemCodeHash(plain: string): Buffer {
  return hash("sha256", plain, "buffer");
}

/** The last characters of a code, by which people recognise it. */
function redeemCodeHint(code: string): string {
  return code.slice(-groupChars);
}
