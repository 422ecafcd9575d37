/**
 * Claims idempotency keys for calls, and keeps their replies. Prepared SQL, because a claim is
 * decided by one insert, and because its process and its charge decide whether it may be taken
 * over.
 */
import type { Pool } from "pg";
import { mapDatabaseLoss } from "../../core/database-lost.ts";
import {
  keptRepliesAccountBytesMax,
  keptReplyBytesMax,
  keptReplyTtlMs,
} from "../../core/limits.ts";
import { periodic, type PeriodicJobs } from "../../core/periodic.ts";
import type { SealedColumns } from "../../core/sealed-columns.ts";
import { createSealing, type Sealing } from "../../core/sealing.ts";
import type { RowOf } from "../../db/row.ts";
import type { IdempotentCallEntity } from "../entity.ts";
import { inUse, notKept, usedForAnother } from "./refusals.ts";
import * as sql from "./claims-sql.ts";

/** A call that claims the key of its request. */
export interface Claim {
  readonly accountId: string;
  /** The header's value. */
  readonly key: string;
  /** SHA-256 of the request. */
  readonly fingerprint: Buffer;
  readonly callId: string;
  readonly requestId: string;
}

/**
 * The idempotency keys of calls. All methods throw GatewayError SERVICE_UNAVAILABLE if the database
 * is unreachable.
 */
export interface Claims {
  /**
   * Claims a key. The claim of a call that failed, or whose process died, is taken over if that
   * call was not charged.
   *
   * @returns the reply that is kept for the key, as {@link keep} got it; undefined if the call may
   * run
   * @throws GatewayError IDEMPOTENCY_KEY_IN_USE, IDEMPOTENCY_KEY_REUSED
   */
  claim(claim: Claim): Promise<string | undefined>;
  /**
   * Keeps a reply. @param reply undefined if it cannot be kept: repetitions are then refused
   *
   * @returns false if another call has taken over the key, so that this one must be free of charge
   */
  keep(claim: Claim, reply: string | undefined): Promise<boolean>;
  /** Gives a key back after a call without a charge: the next request with it runs. */
  release(claim: Claim): Promise<void>;
  /** Deletes expired keys. */
  readonly jobs: PeriodicJobs;
}

/** Options of {@link createClaims}. */
interface ClaimsOptions {
  readonly pool: Pool;
  /** The connections of the jobs. */
  readonly jobPool: Pool;
  /** The master key, 32 bytes. */
  readonly masterKey: Uint8Array;
  /** This process in the table `node`. */
  readonly nodeId: string;
  /** Storage limit of an account. Default `keptRepliesAccountBytesMax`; tests lower it. */
  readonly accountBytesMax?: number;
  /** Logs warnings for operators, without secrets. */
  readonly warn: (message: string, fields: Readonly<Record<string, unknown>>) => void;
}

const purpose = "idempotent-reply";

/** The kept replies, for a change of the master key. */
export const sealedReplies: SealedColumns = {
  table: "idempotent_call",
  key: ["account_id", "key"],
  columns: ["sealed"],
  account: "account_id",
  purpose,
  context: (row) => Buffer.from(row["key"] as string),
};

const expireMs = 10 * 60 * 1_000;

/** A process trims an account after it has written this share of the account's limit. */
const trimShare = 1 / 16;

/** Creates the claims over a database. */
export function createClaims(options: ClaimsOptions): Claims {
  return new PostgresClaims(options);
}

type Row = RowOf<
  typeof IdempotentCallEntity,
  "fingerprint" | "call_id" | "request_id" | "is_ended" | "sealed"
> & {
  /** Whether the call has an open hold. */
  readonly is_held: boolean;
  /** Cost of the call; null if it has no record. */
  readonly cost: string | null;
  /** Whether its process is alive. */
  readonly is_alive: boolean;
};

class PostgresClaims implements Claims {
  readonly jobs: PeriodicJobs;
  readonly #options: ClaimsOptions;
  readonly #sealing: Sealing;
  /** Bytes written since the last trim, by account. */
  readonly #written = new Map<string, number>();

  constructor(options: ClaimsOptions) {
    this.#options = options;
    this.#sealing = createSealing(options.masterKey, purpose);
    const run = (): Promise<unknown> => options.jobPool.query(sql.expire);
    const onError = (err: unknown): void =>
      options.warn("deleting expired idempotency keys failed; trying again later", { err });
    this.jobs = periodic([{ run, everyMs: expireMs, onError }]);
  }

  async claim(claim: Claim): Promise<string | undefined> {
    if (await this.#change(sql.claim, claim, keptReplyTtlMs)) return undefined;
    const { accountId, key, fingerprint } = claim;
    const values = [accountId, key, this.#options.nodeId];
    const { rows } = await mapDatabaseLoss(this.#options.pool.query<Row>(sql.find, values));
    const [row] = rows;
    if (row === undefined) throw inUse();
    if (isFree(row)) {
      if (await this.#change(sql.takeOver, claim, keptReplyTtlMs, row.call_id)) return undefined;
      throw inUse();
    }
    if (!fingerprint.equals(row.fingerprint)) throw usedForAnother(row.request_id);
    if (row.is_ended) return this.#open(claim, row);
    throw row.cost === null ? inUse() : notKept(row.request_id);
  }

  async keep({ accountId, key, callId }: Claim, reply: string | undefined): Promise<boolean> {
    const sealed = reply === undefined ? null : this.#sealing.seal(accountId, context(key), reply);
    const bytes = sealed?.length ?? 0;
    const isKept = bytes <= keptReplyBytesMax;
    const values = [accountId, key, callId, isKept ? sealed : null, isKept ? bytes : 0];
    const kept = await mapDatabaseLoss(this.#options.pool.query(sql.keep, values));
    if (isKept) await this.#count(accountId, bytes);
    return kept.rowCount === 1;
  }

  async release({ accountId, key, callId }: Claim): Promise<void> {
    await mapDatabaseLoss(this.#options.pool.query(sql.release, [accountId, key, callId]));
  }

  #open({ accountId, key }: Claim, { sealed, request_id: requestId }: Row): string {
    if (sealed === null) throw notKept(requestId);
    const reply = this.#sealing.open(accountId, context(key), sealed);
    if (reply === undefined) throw notKept(requestId);
    return reply;
  }

  /** @returns whether the key belongs to the call now */
  async #change(text: string, claim: Claim, ...further: readonly unknown[]): Promise<boolean> {
    const { accountId, key, fingerprint, callId, requestId } = claim;
    const { pool, nodeId } = this.#options;
    const values = [accountId, key, fingerprint, callId, requestId, nodeId, ...further];
    return (await mapDatabaseLoss(pool.query(text, values))).rowCount === 1;
  }

  async #count(accountId: string, bytes: number): Promise<void> {
    const { pool, accountBytesMax = keptRepliesAccountBytesMax } = this.#options;
    const written = (this.#written.get(accountId) ?? 0) + bytes;
    this.#written.set(accountId, written);
    if (written <= accountBytesMax * trimShare) return;
    this.#written.delete(accountId);
    await mapDatabaseLoss(pool.query(sql.trim, [accountId, accountBytesMax]));
  }
}

/** Whether the first call failed free of charge, or died before it held money. */
function isFree({ is_ended: isEnded, is_held: isHeld, is_alive: isAlive, cost }: Row): boolean {
  if (isEnded || isHeld) return false;
  return cost === null ? !isAlive : BigInt(cost) === 0n;
}

function context(key: string): Uint8Array {
  return Buffer.from(key);
}
