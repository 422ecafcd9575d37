/** Puts the journal together: its own files, and those that dead processes left. */
import { Client } from "pg";
import { Journal, type JournalOptions, type JournalStats } from "./journal.ts";
import type { JournalEntry } from "./journal-format.ts";
import { JournalReplay } from "./journal-replay.ts";

/** What {@link openJournal} needs. */
export interface OpenJournalOptions extends JournalOptions {
  /** The database. Contains a password: never logged. */
  readonly url: string;
  /** Books a settlement of a dead process; see {@link JournalReplay}. */
  readonly settle: (entry: JournalEntry) => Promise<void>;
}

/** A journal in use. */
export interface OpenJournal {
  /** This process's own. */
  readonly own: Journal;
  /** Of the own one and of those that are being replayed. */
  stats(): JournalStats;
  /** Ends the replay. What is not booked yet stays for the next start of a process. */
  stopReplay(): Promise<void>;
}

/** How long to wait for a connection, in milliseconds. */
const connectTimeoutMs = 2_000;

/**
 * Opens it, and replays what is there in the background: the holds of those calls still keep their money, so
 * that nothing can be spent twice meanwhile, and no start waits for a long journal.
 */
export function openJournal({ url, settle, ...options }: OpenJournalOptions): OpenJournal {
  const own = new Journal(options);
  const replay = new JournalReplay({
    folder: options.folder,
    prefix: own.prefix,
    worker: options.worker,
    knownHolds: (ids) => knownHolds(url, ids),
    settle,
    touch: () => own.touch(),
    ...(options.alarm && { alarm: options.alarm }),
    ...(options.at && { at: options.at }),
  });
  replay.start();
  return {
    own,
    stats() {
      const stats = own.stats();
      return { ...stats, entries: stats.entries + replay.entries };
    },
    stopReplay: () => replay.stop(),
  };
}

/** Which of these holds the database knows. Holds are never deleted: it has made those that it does not know
 * nowhere. A connection of its own, for it is rarely needed. */
async function knownHolds(url: string, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const client = new Client({
    connectionString: url,
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: connectTimeoutMs,
    application_name: "uas-journal",
  });
  client.on("error", () => {});
  try {
    await client.connect();
    const text = "select id from hold where id = any($1::uuid[])";
    const { rows } = await client.query<{ id: string }>(text, [ids]);
    return new Set(rows.map(({ id }) => id));
  } finally {
    await client.end().catch(() => {});
  }
}
