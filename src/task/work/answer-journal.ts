/**
 * Keeps vendors' answers to submits on this machine's disk while the database is away: what a vendor has accepted or made
 * is paid for, and it is not asked again. It is a journal like that of settlements, in a folder of its own, so that large
 * results never take the space of settlements. Answers are sealed with the master key, because results are customers'
 * content. Parameters, prompts and credentials are not in them.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Pool } from "pg";
import { JournalReplay } from "../../billing/journal/journal-replay.ts";
import { Journal } from "../../billing/journal/journal.ts";
import { journalRetryMs, taskAnswerBytesMax, taskAnswersMax } from "../../core/limits.ts";
import { isDatabaseLost } from "../../core/database-lost.ts";
import { createSealing, type Sealing } from "../../core/sealing.ts";
import type { Submitted, TaskOutcome, VendorFile } from "../../provider/task.ts";
import type { TaskRow } from "../task-row.ts";

/** The attempt at a task that an answer belongs to. */
export type Attempt = Pick<
  TaskRow,
  "id" | "account_id" | "attempt_token" | "vendor" | "vendor_model"
>;

/** An answer that a process has left. */
export interface LeftAnswer {
  readonly attempt: Attempt;
  readonly submitted: Submitted;
}

/** A line of the journal. */
interface AnswerEntry extends Attempt {
  /** The answer as sealed JSON, in base64. */
  readonly sealed: string;
}

/** Options of {@link AnswerJournal}. */
export interface AnswerJournalOptions {
  /** The folder of its files. */
  readonly folder: string;
  readonly pool: Pick<Pool, "query">;
  /** The master key, 32 bytes. */
  readonly masterKey: Uint8Array;
  /** Logs what an operator must know, without secrets. */
  readonly alarm: (message: string, fields: Readonly<Record<string, unknown>>) => void;
}

/** How many answers of dead processes are continued at once: their results are downloaded. */
const replayedMax = 20;

/** The journal of one start of a process. */
export class AnswerJournal {
  readonly #options: AnswerJournalOptions;
  readonly #sealing: Sealing;
  readonly #own: Journal<AnswerEntry>;
  readonly #stopped = new AbortController();
  #replay: JournalReplay<AnswerEntry> | undefined;

  constructor(options: AnswerJournalOptions) {
    const { folder, alarm, masterKey } = options;
    this.#options = options;
    this.#sealing = createSealing(masterKey, "task answer");
    this.#own = new Journal({ folder, alarm, entryName: "answer", entriesMax: taskAnswersMax });
  }

  /** How many answers the database does not have yet. */
  get entries(): number {
    return this.#own.stats().entries + (this.#replay?.entries ?? 0);
  }

  /** An answer that only this process knows so far. */
  hold(attempt: Attempt, submitted: Submitted): UnstoredAnswer {
    return new UnstoredAnswer({
      keep: () => this.#keep(attempt, submitted),
      forget: () => this.#own.forget(attempt.id),
    });
  }

  /**
   * Continues tasks whose answers dead processes left.
   *
   * @param adopt resolves to whether nothing is left to do; else it is called again. Rejects where it never can be done
   */
  start(adopt: (left: LeftAnswer) => Promise<boolean>): void {
    const { folder, alarm } = this.#options;
    this.#replay = new JournalReplay<AnswerEntry>({
      ...{ folder, alarm, entryName: "answer", chunkMax: replayedMax },
      prefix: this.#own.prefix,
      findKnown: (entries) => this.#findKnown(entries),
      apply: async (entry) => this.#apply(this.#open(entry), adopt),
      touch: () => this.#own.touch(),
    });
    this.#replay.start();
  }

  /** Continues no more tasks. Answers that are not stored stay for the next start of a process. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#replay?.stop();
  }

  /** Closes the files, once nothing is added any more. */
  close(): Promise<void> {
    return this.#own.close();
  }

  async #keep(attempt: Attempt, submitted: Submitted): Promise<void> {
    const json = toJson(submitted);
    const isKept = json !== undefined && (await this.#own.keep(this.#seal(attempt, json)));
    if (isKept) return;
    const message =
      "a vendor's answer is kept in memory only: its task fails if this process ends before the database is back";
    this.#options.alarm(message, { taskId: attempt.id, vendor: attempt.vendor });
  }

  #seal(attempt: Attempt, json: string): AnswerEntry {
    const { id, account_id, attempt_token, vendor, vendor_model } = attempt;
    const sealed = this.#sealing.seal(account_id, Buffer.from(id), json).toString("base64");
    return { id, account_id, attempt_token, vendor, vendor_model, sealed };
  }

  /** @throws where it was sealed with another master key */
  #open({ sealed, ...attempt }: AnswerEntry): LeftAnswer {
    const { id, account_id: accountId } = attempt;
    const json = this.#sealing.open(accountId, Buffer.from(id), Buffer.from(sealed, "base64"));
    if (json === undefined) throw new Error("the answer was sealed with another master key");
    return { attempt, submitted: fromJson(json) };
  }

  async #findKnown(entries: readonly AnswerEntry[]): Promise<ReadonlySet<string>> {
    const ids = entries.map(({ id }) => id);
    const sql = "select id from task where id = any($1::uuid[])";
    const { rows } = await this.#options.pool.query<{ id: string }>(sql, [ids]);
    return new Set(rows.map(({ id }) => id));
  }

  async #apply(left: LeftAnswer, adopt: (left: LeftAnswer) => Promise<boolean>): Promise<void> {
    const { signal } = this.#stopped;
    for (;;) {
      const isDone = await adopt(left).catch((error: unknown) => {
        if (isDatabaseLost(error)) return false;
        throw error;
      });
      if (isDone) return;
      await delay(journalRetryMs, undefined, { signal });
    }
  }
}

/** An answer that only this process knows, until the database has it. */
export class UnstoredAnswer {
  readonly #journal: { readonly keep: () => Promise<void>; readonly forget: () => void };
  #keeping: Promise<void> | undefined;
  #isLeft = false;

  constructor(journal: { readonly keep: () => Promise<void>; readonly forget: () => void }) {
    this.#journal = journal;
  }

  /** Writes it to the journal, once: the database did not take it at once. Never rejects. */
  keep(): Promise<void> {
    return (this.#keeping ??= this.#journal.keep());
  }

  /** Keeps it for another start of a process: this one cannot go on with it. */
  leave(): Promise<void> {
    this.#isLeft = true;
    return this.keep();
  }

  /** Removes it from the journal: nothing is left to do, unless it was left. Returns whether that is so. */
  end(): boolean {
    if (!this.#isLeft && this.#keeping !== undefined) this.#journal.forget();
    return !this.#isLeft;
  }
}

type JsonFile = Omit<VendorFile, "bytes" | "headers"> & { readonly bytes?: string };

type JsonAnswer = Omit<Submitted, "done"> & {
  readonly done?: Omit<TaskOutcome, "files"> & { readonly files: readonly JsonFile[] };
};

/** `undefined`: the answer is too large, or writes rows that nobody could make again. */
function toJson(submitted: Submitted): string | undefined {
  if (!("done" in submitted)) return JSON.stringify(submitted);
  const { done } = submitted;
  const bytes = done.files.reduce((sum, file) => sum + (file.bytes?.length ?? 0), 0);
  if (bytes > taskAnswerBytesMax) return undefined;
  if (done.inSameTransaction !== undefined && done.rows === undefined) return undefined;
  const files = done.files.map(toJsonFile);
  return JSON.stringify({ ...submitted, done: { ...done, files } } satisfies JsonAnswer);
}

function toJsonFile(file: VendorFile): JsonFile {
  // Headers carry the vendor's credential.
  const { headers: _, bytes, ...rest } = file;
  return { ...rest, ...(bytes && { bytes: bytes.toString("base64") }) };
}

function fromJson(json: string): Submitted {
  const answer = JSON.parse(json) as JsonAnswer;
  const { done, ...rest } = answer;
  if (done === undefined) return rest as Submitted;
  const files = done.files.map(({ bytes, ...file }) => ({
    ...file,
    ...(bytes !== undefined && { bytes: Buffer.from(bytes, "base64") }),
  }));
  return { ...rest, done: { ...done, files } };
}
