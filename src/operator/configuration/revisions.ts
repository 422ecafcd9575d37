/**
 * The revisions of the configuration, and what is in force in each process. SQL: a revision is
 * compared and added under a lock.
 */
import type { Pool, PoolClient } from "pg";
import { mapDatabaseLoss } from "../../core/database-lost.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import type { Queryable } from "../../db/pool/queryable.ts";

/** Notifies of new revisions and secrets. */
export const configChannel = "uas_config";

/** A revision without its document. */
export interface RevisionFacts {
  /** Its number, from 1, as digits. */
  readonly number: string;
  readonly create_time: Date;
  readonly author: string;
  readonly note: string;
  /** Null: it returned to the file. */
  readonly hash: string | null;
}

/** A revision. */
export interface Revision extends RevisionFacts {
  /** Null: the file of each gateway is in force. */
  readonly document: string | null;
}

/** A revision to add. */
export type NewRevision = Pick<Revision, "document" | "hash" | "author" | "note">;

const facts = "number::text, create_time, author, note, hash";

/** The newest revision, which decides what is in force; undefined if there never was one. */
export async function newestRevision(pool: Queryable): Promise<Revision | undefined> {
  const { rows } = await pool.query<Revision>(
    `select ${facts}, document from config_revision order by config_revision.number desc limit 1`,
    [],
  );
  return rows[0];
}

/** The etag of the state that a newest revision makes. */
export function etagOf(newest: Pick<Revision, "number"> | undefined): string {
  return newest?.number ?? "0";
}

/**
 * Adds a revision, which is then in force, and notifies all processes at the end of the
 * transaction.
 *
 * @param etag of the state that it replaces; empty: any
 * @throws GatewayError CONFLICT if the state is another one
 */
export async function addRevision(
  client: PoolClient,
  { document, hash, author, note }: NewRevision,
  etag: string,
): Promise<RevisionFacts> {
  await client.query("lock table config_revision in share row exclusive mode");
  const newest = await newestRevision(client);
  if (etag !== "" && etag !== etagOf(newest)) throw changedMeanwhile(newest);
  const { rows } = await client.query<RevisionFacts>(
    `insert into config_revision (number, document, hash, author, note)
       select $1::bigint + 1, $2, $3, $4, $5 returning ${facts}`,
    [newest?.number ?? 0, document, hash, author, note],
  );
  await client.query("select pg_notify($1, '')", [configChannel]);
  const [added] = rows;
  if (added === undefined) throw new Error("a revision was not inserted");
  return added;
}

function changedMeanwhile(newest: Revision | undefined): GatewayError {
  const by = newest === undefined ? "" : ` by ${newest.author}: revision ${newest.number}`;
  return new GatewayError(
    ErrorCode.CONFLICT,
    `the configuration was changed meanwhile${by}; read it again and repeat your change`,
    { param: "etag" },
  );
}

/** Lists revisions, newest first. @param before only those with a smaller number; undefined: all */
export async function listRevisions(
  pool: Pool,
  { before, limit }: { readonly before: string | undefined; readonly limit: number },
): Promise<readonly RevisionFacts[]> {
  const { rows } = await mapDatabaseLoss(
    pool.query<RevisionFacts>(
      `select ${facts} from config_revision where $1::bigint is null or number < $1
         order by config_revision.number desc limit $2`,
      [before ?? null, limit],
    ),
  );
  return rows;
}

/** @throws GatewayError NOT_FOUND if there is no revision with this number */
export async function requireRevision(pool: Queryable, number: bigint): Promise<Revision> {
  const { rows } = await mapDatabaseLoss(
    pool.query<Revision>(`select ${facts}, document from config_revision where number = $1`, [
      number.toString(),
    ]),
  );
  const [found] = rows;
  if (found !== undefined) return found;
  throw new GatewayError(
    ErrorCode.NOT_FOUND,
    `there is no revision ${number}: list them with ListRevisions or \`uas config list\``,
    { param: "revision" },
  );
}

/** The configuration of one process. */
export interface ProcessState {
  readonly source: string;
  readonly hash: string;
  readonly load_time: Date;
  readonly needs_restart: readonly string[];
  /** Null if the last attempt to load another one did not fail. */
  readonly problem: string | null;
}

/** Stores what is in force in a process, and deletes what is stored of processes that ended. */
export async function storeProcessState(
  pool: Queryable,
  processId: string,
  { source, hash, load_time, needs_restart, problem }: ProcessState,
): Promise<void> {
  await pool.query(
    `with ended as (
       delete from config_process c using node n where n.id = c.process_id and n.ended is not null)
     insert into config_process (process_id, source, hash, load_time, needs_restart, problem)
       values ($1, $2, $3, $4, $5, $6)
       on conflict (process_id) do update set source = excluded.source, hash = excluded.hash,
         load_time = excluded.load_time, needs_restart = excluded.needs_restart,
         problem = excluded.problem`,
    [processId, source, hash, load_time, needs_restart, problem],
  );
}

/** A living process with its configuration. */
export interface ProcessRow extends ProcessState {
  readonly process_id: string;
  readonly name: string;
}

/** The living processes, by name. */
export async function listProcessStates(pool: Pool): Promise<readonly ProcessRow[]> {
  const { rows } = await mapDatabaseLoss(
    pool.query<ProcessRow>(
      `select c.process_id, n.name, c.source, c.hash, c.load_time, c.needs_restart, c.problem
         from config_process c join node n on n.id = c.process_id
         where n.ended is null and n.seen_time > now() - interval '1 minute' order by n.name, n.id`,
    ),
  );
  return rows;
}
