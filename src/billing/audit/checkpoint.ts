/**
 * The chain of audits. A checkpoint says up to where the ledger has been audited and what it
 * contained, with the hash of the checkpoint before it. An operator who noted the newest hash can
 * prove that nothing before it was changed or lost.
 */
import { createHash } from "node:crypto";
import { formatUsd } from "../../core/money.ts";
import type { RowOf } from "../../db/row.ts";
import type { Queryable } from "../../db/pool/queryable.ts";
import type { LedgerCheckpointEntity } from "../entity.ts";
import type { AuditWindow } from "./audit-step.ts";
import { type AuditBreach, budgetCharges } from "./audit.ts";

/** A link of the chain. */
export interface Checkpoint extends CheckpointContents {
  /** SHA-256 of the contents, in hexadecimal. */
  readonly hash: string;
}

/** The hashed part of a checkpoint, in the order of its JSON. */
interface CheckpointContents {
  /** 1, 2, 3, … */
  readonly n: number;
  /** The hash of the checkpoint before it; empty for the first. */
  readonly previous: string;
  /** By the database's clock, ISO 8601. */
  readonly time: string;
  /** Entries up to this number have been audited. */
  readonly seq: string;
  /** Holds and calls with lower ids have been audited. */
  readonly holdId: string;
  /** Number of entries up to `seq`. */
  readonly entries: number;
  /** SHA-256 of the entries since the checkpoint before. */
  readonly digest: string;
  /** Sums of all entries up to `seq` in nano-USD, by ledger account: 1 customers, 2 revenue, … */
  readonly sums: Readonly<Record<string, string>>;
  /** Why an operator accepted entries that break a rule. */
  readonly accepted?: Acceptance;
}

/** A state that breaks a rule and that an operator accepted. */
export interface Acceptance {
  readonly reason: string;
  /** The rules that the accepted entries break, with the rows. */
  readonly breaches: readonly string[];
}

/** Before the first checkpoint. */
const start: Checkpoint = {
  n: 0,
  previous: "",
  time: "",
  seq: "0",
  holdId: "00000000-0000-0000-0000-000000000000",
  entries: 0,
  digest: "",
  sums: {},
  hash: "",
};

type Row = RowOf<typeof LedgerCheckpointEntity, "contents" | "hash">;

/** Reads the newest checkpoint; before the first audit, one with number 0 that covers nothing. */
export async function newestCheckpoint(client: Queryable): Promise<Checkpoint> {
  const { rows } = await client.query<Row>(
    "select contents, hash from ledger_checkpoint order by n desc limit 1",
  );
  return rows[0] === undefined ? start : checkpointOf(rows[0]);
}

/** A checkpoint that an operator noted outside the database. */
export type NotedCheckpoint = Pick<Checkpoint, "n" | "hash">;

/**
 * I13: the chain has the checkpoint that was noted. A database that was taken back to an earlier
 * state lacks it.
 */
export async function verifyNoted(
  client: Queryable,
  { n, hash }: NotedCheckpoint,
): Promise<AuditBreach[]> {
  const text = "select from ledger_checkpoint where n = $1 and hash = $2";
  if ((await client.query(text, [n, hash])).rows.length > 0) return [];
  const newest = await newestCheckpoint(client);
  const end = newest.n === 0 ? "the chain is empty" : `the newest is ${describe(newest)}`;
  const detail =
    `checkpoint ${n}:${hash} is not in the chain: ${end}. ` +
    "The database was taken back to an earlier state, or is another one";
  return [{ rule: "I13", detail }];
}

function describe({ n, time, entries, sums }: Checkpoint): string {
  const balances = formatUsd(BigInt(sums["1"] ?? 0));
  return `${n} of ${time} (${entries} entries, balances of ${balances} USD)`;
}

const entryText =
  "concat_ws('|', seq, txn_id, account, account_id, kind, amount, " +
  "coalesce(balance_after::text, ''), coalesce(reference, ''), coalesce(call_id::text, ''))";

const windowSql = `
select now() as time, count(*) as entries,
    encode(sha256(convert_to(coalesce(string_agg(${entryText}, E'\\n'
      order by seq, txn_id, account), ''), 'UTF8')), 'hex') as digest,
    (select coalesce(json_object_agg(account, total), '{}') from (
      select account, sum(amount)::text as total from ledger_entry
        where seq > $1 and seq <= $2 group by account) s) as sums
  from ledger_entry where seq > $1 and seq <= $2`;

interface WindowRow {
  readonly time: Date;
  readonly entries: string;
  readonly digest: string;
  readonly sums: Readonly<Record<string, string>>;
}

async function readWindow(
  client: Queryable,
  { fromSeq, toSeq }: Pick<AuditWindow, "fromSeq" | "toSeq">,
): Promise<WindowRow> {
  const { rows } = await client.query<WindowRow>(windowSql, [fromSeq, toSeq]);
  if (rows[0] === undefined) throw new Error("an aggregate returned no row");
  return rows[0];
}

const addAccountsSql = `
insert into audited_account as a (account_id, amount)
  select account_id, sum(amount)::bigint from ledger_entry
    where seq > $1 and seq <= $2 and account = 1 group by account_id
  on conflict (account_id) do update set amount = a.amount + excluded.amount`;

const addKeysSql = `
insert into audited_key as k (key_id, spent)
  select h.key_id, sum(e.amount)::bigint
    from ledger_entry e
      join ledger_charge h on h.account_id = e.account_id and h.id = coalesce(e.call_id, e.txn_id)
    where e.seq > $1 and e.seq <= $2 and e.account = 2 and e.kind in (2, 6) and h.key_id is not null
    group by h.key_id
  on conflict (key_id) do update set spent = k.spent + excluded.spent`;

/** Begins anew with each period. The entries that came before it are of holds of an earlier one. */
const addBudgetsSql = `
insert into audited_budget as a (owner_id, period, start_time, from_seq, spent)
  select b.owner_id, b.period, b.start_time, b.from_seq, sum(e.amount)::bigint ${budgetCharges}
    where e.seq > $1 and e.seq <= $2 group by b.owner_id, b.period
  on conflict (owner_id, period) do update set start_time = excluded.start_time, from_seq = excluded.from_seq,
    spent = excluded.spent + case when (a.start_time, a.from_seq) = (excluded.start_time, excluded.from_seq)
      then a.spent else 0 end`;

/**
 * Adds a checkpoint for a window, with the sums of its entries. Call it in the transaction that
 * audited them.
 *
 * @param accepted broken rules that an operator accepted. Default: none
 */
export async function addCheckpoint(
  client: Queryable,
  previous: Checkpoint,
  window: AuditWindow,
  accepted?: Acceptance,
): Promise<Checkpoint> {
  const { fromSeq, toSeq, toId } = window;
  await client.query(addAccountsSql, [fromSeq, toSeq]);
  await client.query(addKeysSql, [fromSeq, toSeq]);
  await client.query(addBudgetsSql, [fromSeq, toSeq]);
  const { time, entries, digest, sums } = await readWindow(client, window);
  const contents: CheckpointContents = {
    n: previous.n + 1,
    previous: previous.hash,
    time: time.toISOString(),
    seq: toSeq,
    holdId: toId,
    entries: previous.entries + Number(entries),
    digest,
    sums: addSums(previous.sums, sums),
    ...(accepted && { accepted }),
  };
  const text = JSON.stringify(contents);
  const hash = hashOf(text);
  await client.query(
    "insert into ledger_checkpoint (n, create_time, seq, hold_id, contents, hash) values ($1, $2, $3, $4, $5, $6)",
    [contents.n, time, toSeq, toId, text, hash],
  );
  return { ...contents, hash };
}

/**
 * I14: every checkpoint has its hash, follows the one before it, and the entries that it covers are
 * still the same.
 */
export async function verifyChain(client: Queryable): Promise<AuditBreach[]> {
  const found: AuditBreach[] = [];
  const note = (detail: string): void => void found.push({ rule: "I14", detail });
  let before = start;
  for (;;) {
    const { rows } = await client.query<Row>(
      "select contents, hash from ledger_checkpoint where n > $1 order by n limit 1",
      [before.n],
    );
    const [row] = rows;
    if (row === undefined) return found;
    const checkpoint = checkpointOf(row);
    const { n, previous, seq, digest } = checkpoint;
    if (hashOf(row.contents) !== row.hash) note(`checkpoint ${n} does not have its hash`);
    if (previous !== before.hash) note(`checkpoint ${n} does not follow checkpoint ${before.n}`);
    const now = await readWindow(client, { fromSeq: before.seq, toSeq: seq });
    if (now.digest !== digest) {
      const counted = checkpoint.entries - before.entries;
      note(
        `the ${counted} entries that checkpoint ${n} of ${checkpoint.time} covers have changed: ` +
          `there are ${now.entries} with the numbers ${before.seq} to ${seq}`,
      );
    }
    before = checkpoint;
  }
}

function checkpointOf({ contents, hash }: Row): Checkpoint {
  return { ...(JSON.parse(contents) as CheckpointContents), hash };
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function addSums(
  before: Readonly<Record<string, string>>,
  more: Readonly<Record<string, string>>,
): Record<string, string> {
  const sides = [...new Set([...Object.keys(before), ...Object.keys(more)])].sort();
  const sum = (side: string): string =>
    (BigInt(before[side] ?? 0) + BigInt(more[side] ?? 0)).toString();
  return Object.fromEntries(sides.map((side) => [side, sum(side)]));
}
