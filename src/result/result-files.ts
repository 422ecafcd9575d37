/**
 * Stores result files and finds them. SQL: token and blob are one statement that locks, and each
 * download runs the other.
 *
 * Storing has three steps: the file is spooled and hashed; token and blob are inserted, so that no
 * job removes the bytes from then on; the bytes are stored, and the token becomes ready. A process
 * that dies in between leaves an unpublished token, which expires within the hour.
 */
import { randomBytes } from "node:crypto";
import type { Readable } from "node:stream";
import type { Pool } from "pg";
import { resultBytesMax, resultPendingMs, resultTtlMs, resultUploadMs } from "../core/limits.ts";
import { limitTime } from "../core/async.ts";
import { mapDatabaseLoss } from "../core/database-lost.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import type { RowOf } from "../db/row.ts";
import type { GuardedClient } from "../http/guarded-client.ts";
import { fileKind, type FileKind } from "./content-type.ts";
import type { ResultBlobEntity, ResultFileEntity } from "./entity.ts";
import {
  type ByteRange,
  type FoundResult,
  type ResultAbout,
  ResultFailure,
  type ResultFiles,
  type ResultSource,
} from "./result.ts";
import { Spool, type Spooled } from "./spool.ts";
import type { ResultStorage } from "./storage.ts";
import { type DownloadLimits, download } from "./download.ts";

/** Options of {@link createResultFiles}. */
export interface ResultFilesOptions {
  readonly pool: Pool;
  /** New files are stored in the first one; files of the others are still found. */
  readonly storages: readonly [ResultStorage, ...ResultStorage[]];
  /** The folder of temporary files. */
  readonly spoolFolder: string;
  /** Fetches from addresses that vendors name. */
  readonly client: GuardedClient;
  /** The gateway's public address, without a trailing slash. Read when a file is stored. */
  readonly publicUrl: () => string;
  /** The limits of limits.ts by default. */
  readonly limits?: DownloadLimits;
  /** Measures a video or audio file, in seconds. Lengths stay unknown by default. */
  readonly measure?: Measure;
  /** Called at steps of a store, where tests wait or fail. Does nothing by default. */
  readonly failpoint?: (point: "spooled" | "registered" | "kept") => Promise<void> | void;
}

/** Measures a file on disk, in seconds; undefined if it has no readable length. */
export type Measure = (file: {
  readonly path: string;
  readonly contentType: string;
  readonly bytes: number;
}) => Promise<number | undefined>;

/** Creates the result files. */
export function createResultFiles(options: ResultFilesOptions): ResultFiles {
  return {
    store: (source, about) => store(options, source, about),
    find: (token) => find(options, token),
  };
}

async function store(options: ResultFilesOptions, source: ResultSource, about: ResultAbout) {
  const { pool, storages, failpoint = () => {} } = options;
  const [storage] = storages;
  const spool = await Spool.open(options.spoolFolder, bytesMaxOf(options)).catch(storageFailure);
  try {
    const declared = await fill(spool, source, { options, signal: about.signal });
    const file = await spool.finish().catch(storageFailure);
    await failpoint("spooled");
    const kind = fileKind(file.head, [about.contentType, declared]);
    const { contentType } = kind;
    const { path, bytes, sha256 } = file;
    // Before the store moves the file. A file that cannot be measured is still stored.
    const seconds = await options.measure?.({ path, contentType, bytes }).catch(() => undefined);
    const token = newToken();
    await mapDatabaseLoss(register(pool, { token, storage: storage.kind, file, kind, about }));
    await failpoint("registered");
    await keep(storage, file, about.signal);
    await failpoint("kept");
    const expireTime = await mapDatabaseLoss(makeReady(pool, token, about.expireTime));
    const url = `${options.publicUrl()}/files/${token}.${kind.extension}`;
    return { token, url, contentType, bytes, sha256, expireTime, seconds };
  } finally {
    // A job later removes a file that cannot be removed now.
    await spool.discard().catch(() => {});
  }
}

function bytesMaxOf({ limits }: ResultFilesOptions): number {
  return limits?.bytesMax ?? resultBytesMax;
}

/** Writes the bytes of a source to the spool. Returns the declared content type. */
async function fill(
  spool: Spool,
  source: ResultSource,
  { options, signal }: { options: ResultFilesOptions; signal: AbortSignal | undefined },
): Promise<string | undefined> {
  const sink = (bytes: Uint8Array): Promise<void> =>
    spool.write(bytes).catch((error: unknown) => {
      throw error instanceof ResultFailure ? error : failureOf(error);
    });
  if ("url" in source) {
    const { client, limits = {} } = options;
    return download(source, { client, limits, signal, sink });
  }
  await sink(source.bytes);
  return undefined;
}

interface Registration {
  readonly token: string;
  readonly storage: string;
  readonly file: Spooled;
  readonly kind: FileKind;
  readonly about: ResultAbout;
}

/**
 * Inserts blob and token in one statement, so one transaction. It locks the blob's row before the
 * token exists: a concurrent removal has either finished, or waits and then sees the token.
 */
async function register(pool: Pool, { token, storage, file, kind, about }: Registration) {
  await pool.query(
    `with blob as (
       insert into result_blob (storage, sha256, bytes) values ($2, decode($3, 'hex'), $4)
       on conflict (storage, sha256) do update set loose = false
       returning storage, sha256)
     insert into result_file
       (token, storage, sha256, content_type, extension, account_id, task_id, expire_time)
     select $1, storage, sha256, $5, $6, $7, $8, now() + $9 * interval '1 ms' from blob`,
    [
      token,
      storage,
      file.sha256,
      file.bytes,
      kind.contentType,
      kind.extension,
      about.accountId,
      about.taskId,
      resultPendingMs,
    ],
  );
}

async function keep(
  storage: ResultStorage,
  file: Spooled,
  signal: AbortSignal | undefined,
): Promise<void> {
  using limit = limitTime(resultUploadMs, signal ? [signal] : []);
  await storage.keep(file, limit.signal).catch((cause: unknown) => {
    throw signal?.aborted ? new ResultFailure("aborted", "given up", { cause }) : failureOf(cause);
  });
}

/**
 * Publishes a token. Returns when it expires: by default `resultTtlMs` from now by the database's
 * clock, which later decides whether it has expired.
 */
async function makeReady(pool: Pool, token: string, expireTime: Date | undefined): Promise<Date> {
  const { rows } = await pool.query<RowOf<typeof ResultFileEntity, "expire_time">>(
    `update result_file set ready = true,
       expire_time = coalesce($2::timestamptz, now() + $3 * interval '1 ms')
     where token = $1 and not ready and sha256 is not null returning expire_time`,
    [token, expireTime, resultTtlMs],
  );
  const [row] = rows;
  if (row === undefined)
    throw new ResultFailure("storage", "storing the file took too long, so it has expired");
  return row.expire_time;
}

function storageFailure(cause: unknown): never {
  throw failureOf(cause);
}

function failureOf(cause: unknown): ResultFailure {
  const said = cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause);
  return new ResultFailure("storage", `the store failed: ${said}`, { cause });
}

type FileRow = RowOf<typeof ResultFileEntity, "storage" | "content_type" | "extension"> &
  RowOf<typeof ResultBlobEntity, "bytes"> & {
    readonly sha256: string;
    readonly expired: boolean;
    readonly left_ms: number;
  };

async function find(options: ResultFilesOptions, token: string): Promise<FoundResult | undefined> {
  if (!isToken(token)) return undefined;
  const { rows } = await mapDatabaseLoss(
    options.pool.query<FileRow>({
      name: "find_result",
      text: `select f.storage, encode(f.sha256, 'hex') as sha256, b.bytes, f.content_type, f.extension,
           (extract(epoch from f.expire_time - now()) * 1000)::float8 as left_ms,
           f.expire_time <= now() or b.sha256 is null as expired
         from result_file f left join result_blob b on b.storage = f.storage and b.sha256 = f.sha256
         where f.token = $1 and f.ready`,
      values: [token],
    }),
  );
  const [row] = rows;
  if (row === undefined) return undefined;
  if (row.expired) return { expired: true };
  const { sha256, extension } = row;
  const storage = options.storages.find(({ kind }) => kind === row.storage);
  return {
    expired: false,
    contentType: row.content_type,
    extension,
    bytes: Number(row.bytes),
    sha256,
    leftMs: row.left_ms,
    open: (range) => open(storage, sha256, range),
  };
}

async function open(
  storage: ResultStorage | undefined,
  sha256: string,
  range: ByteRange,
): Promise<Readable> {
  const stream = await storage?.open(sha256, range).catch((cause: unknown) => {
    const told = "the result file cannot be read right now; try again in a moment";
    throw new GatewayError(ErrorCode.SERVICE_UNAVAILABLE, told, { cause });
  });
  if (stream !== undefined) return stream;
  throw new GatewayError(ErrorCode.INTERNAL_ERROR, "the result file cannot be read", {
    cause: new Error(`the store has lost ${sha256}: several machines need a shared store`),
  });
}

const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** 154 random bits: a token cannot be guessed. */
const tokenChars = 26;

/** Generates a token of letters and digits only, which need no escaping in an address. */
export function newToken(): string {
  let token = "";
  while (token.length < tokenChars) {
    for (const byte of randomBytes(tokenChars)) {
      // 248 is four times 62: the other values would make some letters likelier.
      if (byte < 248 && token.length < tokenChars) token += letters[byte % 62];
    }
  }
  return token;
}

/** Whether a text has the form of a token. */
export function isToken(text: string): boolean {
  return /^[0-9A-Za-z]{26}$/.test(text);
}
