/** Encodes the parameters of the SQL function `ledger_apply`, and decodes its verdicts. */
import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "pg";
import { binaryArray, type EncodeArray } from "../../db/array.ts";
import { type DatabaseAddress, toServers } from "../../db/servers.ts";
import { callColumns, callColumnsCount, checkpointsJson } from "../calls/call-record.ts";
import type { CallRow } from "../calls/call-row.ts";
import type { Failpoint } from "./failpoints.ts";
import type { BudgetLeft, ExtendVerdict, HoldVerdict } from "./ledger.ts";

/** How many parameters `ledger_apply` has after the account. */
const applyParameters = 15 + callColumnsCount;

/** SQL of its call, for `from`. @param account SQL of the account id @param first the number of the next parameter */
export function applyCall(account: string, first: number): string {
  const others = Array.from({ length: applyParameters }, (_, index) => `$${first + index}`);
  return `ledger_apply(${[account, ...others].join(", ")})`;
}

/** The one statement that changes the money of calls. */
export const applyStatement: Statement = {
  name: "ledger_apply",
  text: `select * from ${applyCall("$1", 2)}`,
};

/** A hold as the statement takes it. */
export interface BatchHold {
  readonly id: string;
  /** Nano-USD in decimal digits. */
  readonly amount: string;
  /** Empty where there is none. */
  readonly keyId: string;
  /** Nano-USD in decimal digits; `undefined`: no limit. */
  readonly keyLimit: string | undefined;
  /** Empty where it is not known. */
  readonly requestId: string;
}

/** An extension as the statement takes it. A hold comes once in a batch. */
export interface BatchExtend {
  readonly id: string;
  /** Nano-USD in decimal digits. */
  readonly amount: string;
  readonly checkpoint: Checkpoint | undefined;
}

/** What recovery settles a call with if its process dies. */
export interface Checkpoint {
  /** Nano-USD in decimal digits. */
  readonly cost: string;
  readonly record: CallRow | undefined;
}

/** A settlement as the statement takes it. */
export interface BatchSettle {
  readonly id: string;
  /** Nano-USD in decimal digits. */
  readonly cost: string;
  readonly record: CallRow | undefined;
}

/**
 * - `settled`: charged or released now.
 * - `already`: it had been before; nothing changed.
 * - `unknown`: there never was such a hold of this account. Nothing was charged.
 */
export type SettleVerdict = "settled" | "already" | "unknown";

const admitted: HoldVerdict = { admitted: true };
const budgeted: HoldVerdict = { admitted: true, isBudgeted: true };
const settleWords: Readonly<Record<string, SettleVerdict>> = {
  s: "settled",
  a: "already",
  u: "unknown",
};

/** Operations of one account. */
export interface Batch {
  readonly settles: readonly BatchSettle[];
  readonly extends: readonly BatchExtend[];
  readonly holds: readonly BatchHold[];
}

/** The process that sends a batch, and the lifetime of its holds. */
export interface Sender {
  /** The holds are recovered when this process dies; null: they only expire. */
  readonly nodeId: string | null;
  /** Set until the database has answered once: the first batch registers the process. */
  readonly nodeName: string | null;
  readonly holdTtlMs: number;
}

/** A parameter of {@link applyStatement}. */
export type ApplyValue = string | number | Buffer | null;

/** How {@link applyValues} encodes a batch. */
export interface ApplyOptions {
  /** Whether these operations were never sent before. The statement then skips the search for earlier ones, and fails
   * with a duplicate key where there is one. Default false. */
  readonly isFresh?: boolean;
  /** Default {@link binaryArray}. */
  readonly encode?: EncodeArray;
}

/** The parameters of {@link applyStatement}. */
export function applyValues(
  accountId: string,
  { settles, extends: grown, holds }: Batch,
  { nodeId, nodeName, holdTtlMs }: Sender,
  { isFresh = false, encode = binaryArray }: ApplyOptions = {},
): ApplyValue[] {
  return [
    accountId,
    nodeId,
    nodeName,
    ...settleValues(settles, encode),
    ...extendValues(grown, encode),
    ...holdValues(holds, encode),
    holdTtlMs,
    requestIdsOf(holds, encode),
    isFresh ? "t" : "f",
  ];
}

function settleValues(
  settles: readonly BatchSettle[],
  encode: EncodeArray,
): readonly (string | Buffer | null)[] {
  if (settles.length === 0) return noSettles;
  const hasVendorCosts = settles.some(({ record }) => record?.vendor_cost);
  return [
    encode("uuid", settles, (settle) => settle.id),
    encode("bigint", settles, (settle) => settle.cost),
    hasVendorCosts
      ? encode("bigint", settles, ({ record }) => record?.vendor_cost || undefined)
      : null,
    ...callColumns(settles, encode),
  ];
}

const noSettles: readonly null[] = Array.from({ length: 3 + callColumnsCount }, () => null);

function extendValues(
  grown: readonly BatchExtend[],
  encode: EncodeArray,
): (string | Buffer | null)[] {
  if (grown.length === 0) return [null, null, null];
  return [
    encode("uuid", grown, (extend) => extend.id),
    encode("bigint", grown, (extend) => extend.amount),
    checkpointsJson(grown),
  ];
}

function holdValues(holds: readonly BatchHold[], encode: EncodeArray): (string | Buffer | null)[] {
  if (holds.length === 0) return [null, null, null, null];
  const isLimited = holds.some((hold) => hold.keyLimit !== undefined);
  return [
    encode("uuid", holds, (hold) => hold.id),
    encode("bigint", holds, (hold) => hold.amount),
    keyIdsOf(holds, isLimited, encode),
    isLimited ? encode("bigint", holds, (hold) => hold.keyLimit) : null,
  ];
}

/** The key ids of the holds; a single one where all are equal. */
function keyIdsOf(
  holds: readonly BatchHold[],
  isLimited: boolean,
  encode: EncodeArray,
): string | Buffer | null {
  const keyId = holds[0]?.keyId ?? "";
  if (isLimited || holds.some((hold) => hold.keyId !== keyId)) {
    return encode("uuid", holds, (hold) => hold.keyId || undefined);
  }
  return keyId === "" ? null : `{${keyId}}`;
}

function requestIdsOf(holds: readonly BatchHold[], encode: EncodeArray): string | Buffer | null {
  if (!holds.some(({ requestId }) => requestId !== "")) return null;
  return encode("text", holds, ({ requestId }) => requestId || undefined);
}

/** The verdicts of the holds in their order; `undefined`: all were admitted. */
export function holdVerdicts(row: Row): readonly HoldVerdict[] | undefined {
  const text = row?.["hold_verdicts"];
  return typeof text === "string" ? text.split(",").map(holdVerdict) : undefined;
}

/** The verdicts of the settlements in their order; `undefined`: all were settled now. */
export function settleVerdicts(row: Row): readonly SettleVerdict[] | undefined {
  const text = row?.["settle_verdicts"];
  return typeof text === "string"
    ? text.split(",").map((word) => settleWords[word] ?? "unknown")
    : undefined;
}

/** The verdicts of the extensions in their order; `undefined`: all were granted in full. */
export function extendVerdicts(row: Row): readonly ExtendVerdict[] | undefined {
  const text = row?.["extend_verdicts"];
  if (typeof text !== "string") return undefined;
  return text
    .split(",")
    .map((word) => (word === "c" ? { heldNanos: 0n, closed: true } : { heldNanos: BigInt(word) }));
}

/** The account's balance in nano-USD, where the batch took it below its threshold. */
export function lowBalance(row: Row): bigint | undefined {
  const low = row?.["low_balance"];
  return typeof low === "string" ? BigInt(low) : undefined;
}

/** What the account could not pay of the batch's settlements, in nano-USD, where that is more than 0. */
export function platformLoss(row: Row): bigint | undefined {
  const loss = row?.["platform_loss"];
  return typeof loss === "string" ? BigInt(loss) : undefined;
}

function holdVerdict(word: string): HoldVerdict {
  if (word === "a" || word === "d") return admitted;
  if (word === "b") return budgeted;
  if (word === "c") return { admitted: false, availableNanos: 0n, closed: true };
  if (word.includes("|")) return budgetVerdict(word.split("|"));
  const [available = "0", keyRemaining] = word.split("/");
  const refused = { admitted: false, availableNanos: BigInt(available) } as const;
  return keyRemaining === undefined
    ? refused
    : { ...refused, keyRemainingNanos: BigInt(keyRemaining) };
}

/** See ledger_budget_short. */
function budgetVerdict(words: readonly string[]): HoldVerdict {
  const [available = "0", owner, period, amount = "0", remaining = "0", endMs, timeZone = ""] =
    words;
  const budget: BudgetLeft = {
    owner: owner === "a" ? "account" : "key",
    period: Number(period),
    amountNanos: BigInt(amount),
    remainingNanos: BigInt(remaining),
    resetTime: new Date(Number(endMs)),
    timeZone,
  };
  return { admitted: false, availableNanos: BigInt(available), budget };
}

/** The operation waits · its bytes were written · the database has answered, and no caller knows yet. */
export type Stage = "queued" | "sent" | "answered";

/** Calls the failpoint for each kind of operation in a batch. A release is a settlement with cost 0. */
export function hitFailpoints(
  at: Failpoint,
  { settles, extends: grown, holds }: Batch,
  stage: Stage,
): void {
  if (settles.some(({ cost }) => cost !== "0")) at(`settle.${stage}`);
  if (settles.some(({ cost }) => cost === "0")) at(`release.${stage}`);
  if (grown.length > 0) at(`extend.${stage}`);
  if (holds.length > 0) at(`hold.${stage}`);
}

// One dedicated connection of the ledger to PostgreSQL, which reconnects by itself.

/** A statement that is prepared once per connection. */
export interface Statement {
  /** Unique within the process. */
  readonly name: string;
  readonly text: string;
}

/** The first row of a result, or `undefined`. */
export type Row = Readonly<Record<string, string | number | boolean | null>> | undefined;

/** Options of {@link LedgerConnection}. */
interface LedgerConnectionOptions {
  /** The database. Contains a password: never logged. */
  readonly url: DatabaseAddress;
  /** Called whenever the connection is open and free. */
  readonly onIdle: (connection: LedgerConnection) => void;
}

/** How long to wait for a connection, and for its settings, in milliseconds. */
const connectTimeoutMs = 2_000;

/** The pause between two attempts to connect, in milliseconds: short, so that service resumes soon after an outage. */
const reconnectMs = 200;

/**
 * How long a statement may go unanswered before its connection is dropped, in milliseconds. Longer than
 * the server's own limits below, so that only a server that does not answer at all reaches it.
 */
const answerTimeoutMs = 6_000;

/**
 * A lock that is held too long fails the statement, so that one stuck account does not block a shared
 * connection. A statement whose client is gone ends soon, where the server's platform can detect that.
 * Plans are made once: planning the call of a function with 40 parameters again took 3 µs of each call's 50. Statements
 * that read tables are inside functions, whose own settings prevent sequential scans planned on an empty table.
 */
const sessionSettings = `
  set lock_timeout = '900ms'; set statement_timeout = '5s';
  set plan_cache_mode = force_generic_plan; set synchronous_commit = on;
  do $$ begin
    perform set_config('client_connection_check_interval', '1s', false);
  exception when others then null; end $$`;

/** A connection: idle, busy with one statement, or reconnecting. */
export class LedgerConnection {
  readonly #options: LedgerConnectionOptions;
  readonly #closed = new AbortController();
  #client: Client | undefined;
  #busy = false;

  constructor(options: LedgerConnectionOptions) {
    this.#options = options;
    void this.#connect();
  }

  /** Whether there is a connection, as far as is known. */
  get isOpen(): boolean {
    return this.#client !== undefined;
  }

  /** Whether {@link run} can be called. */
  get isIdle(): boolean {
    return this.#client !== undefined && !this.#busy;
  }

  /**
   * Runs a statement. The connection is busy until it is answered; then `onIdle` is called again.
   *
   * @throws the driver's error; {@link isLost} and {@link isRefused} classify it.
   */
  async run(statement: Statement, values: readonly ApplyValue[]): Promise<Row> {
    const client = this.#client;
    if (!client) throw new Error("the connection is lost");
    this.#busy = true;
    const timer = setTimeout(() => this.#drop(client), answerTimeoutMs);
    try {
      const result = await client.query<NonNullable<Row>>({ ...statement, values: [...values] });
      return result.rows[0];
    } catch (error) {
      if (isLost(error)) this.#drop(client);
      throw error;
    } finally {
      clearTimeout(timer);
      this.#busy = false;
      // After the caller has dealt with the answer: it may have more to send.
      if (this.#client) setImmediate(() => this.isIdle && this.#options.onIdle(this));
    }
  }

  /** Closes the connection; a statement under way fails. */
  async close(): Promise<void> {
    this.#closed.abort();
    await this.#client?.end().catch(() => {});
    this.#client = undefined;
  }

  async #connect(): Promise<void> {
    const { signal } = this.#closed;
    while (!signal.aborted) {
      const client = toServers(this.#options.url).createClient({
        connectLimitMs: connectTimeoutMs,
        keepAlive: true,
        application_name: "uas-ledger",
      });
      // Also for a connection that breaks while idle: no statement would notice.
      client.on("error", () => this.#drop(client));
      client.on("end", () => this.#drop(client));
      try {
        await openSession(client);
        if (signal.aborted) return void client.end().catch(() => {});
        this.#client = client;
        this.#options.onIdle(this);
        return;
      } catch {
        void client.end().catch(() => {});
        await delay(reconnectMs, undefined, { signal, ref: false }).catch(() => {});
      }
    }
  }

  #drop(client: Client): void {
    if (this.#client !== client) return;
    this.#client = undefined;
    // With a statement under way this destroys the socket at once, and the statement fails.
    void client.end().catch(() => {});
    if (!this.#closed.signal.aborted) void this.#connect();
  }
}

/** Whether the connection was lost, by a missing or a telling SQLSTATE. The outcome of the statement is then unknown. */
export function isLost(error: unknown): boolean {
  const code = sqlState(error);
  return code === undefined || code.startsWith("08") || code.startsWith("57P") || code === readOnly;
}

/** The address leads to a standby now: another connection may find the primary. */
const readOnly = "25006";

/** Whether the statement itself is at fault (bad data, a broken constraint): a repetition would fail alike. */
export function isRefused(error: unknown): boolean {
  const code = sqlState(error);
  return code !== undefined && (code.startsWith("22") || code.startsWith("23"));
}

/**
 * Whether a repetition helps only after somebody has changed the database: a missing right, function or table, or an error
 * that the function raises. Not so where the server is short of something or gave way to another transaction.
 */
export function isLasting(error: unknown): boolean {
  const code = sqlState(error);
  return code !== undefined && !isLost(error) && !passingClasses.has(code.slice(0, 2));
}

/** SQLSTATE classes that pass by themselves: rollbacks, resources, locks, interventions and system errors. */
const passingClasses: ReadonlySet<string> = new Set(["40", "53", "55", "57", "58"]);

/** Whether a row of this key exists already. */
export function isDuplicate(error: unknown): boolean {
  return sqlState(error) === "23505";
}

function sqlState(error: unknown): string | undefined {
  // What the server reports has a severity; by its form alone EPIPE would pass for an SQLSTATE.
  if (!(error instanceof Error) || !("severity" in error) || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}

/** Connects and applies the settings. A timeout covers both: a server may accept the connection and then hang. */
async function openSession(client: Client): Promise<void> {
  const timer = setTimeout(() => void client.end().catch(() => {}), 2 * connectTimeoutMs);
  try {
    await client.connect();
    await client.query(sessionSettings);
  } finally {
    clearTimeout(timer);
  }
}
