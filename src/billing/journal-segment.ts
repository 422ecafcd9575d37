/** One file of the settlement journal, as the process that writes it sees it. */
import { constants } from "node:fs";
import { type FileHandle, mkdir, open, rm, stat, utimes } from "node:fs/promises";
import { dirname } from "node:path";

/** How the names of files end that may hold settlements. */
export const segmentSuffix = ".journal";

/** A file that is appended to. */
export class Segment {
  readonly path: string;
  /** How many of its settlements the database does not have yet. */
  waiting = 0;
  /** Its length as far as it is durable. */
  bytes = 0;
  readonly #file: FileHandle;

  private constructor(path: string, file: FileHandle) {
    this.path = path;
    this.#file = file;
  }

  /** Makes it, and its folder, readable by this user only; its name is durable then. @throws where it cannot be made */
  static async create(path: string): Promise<Segment> {
    const folder = dirname(path);
    if ((await mkdir(folder, { recursive: true, mode: 0o700 })) !== undefined) {
      await syncFolder(dirname(folder));
    }
    const file = await open(path, "ax", 0o600);
    try {
      await syncFolder(folder);
    } catch (error) {
      await file.close().catch(() => {});
      await rm(path, { force: true });
      throw error;
    }
    return new Segment(path, file);
  }

  /**
   * Adds text and makes it durable.
   *
   * @returns whether whoever takes this file over will read the text. False: somebody did so already, perhaps
   * before the text was written; it must be written elsewhere.
   * @throws where it cannot be written; the file then ends as before, or with an unfinished line, and must not
   * be appended to any more: what a failed fsync has left of a file is anybody's guess.
   */
  async append(text: string, onWritten: () => void): Promise<boolean> {
    try {
      await this.#file.appendFile(text);
      onWritten();
      await this.#file.datasync();
    } catch (error) {
      await this.#file.truncate(this.bytes).catch(() => {});
      throw error;
    }
    // One who takes over renames first and reads then: what was durable before the name was looked at is read.
    if (!(await this.#hasItsName())) return false;
    this.bytes += Buffer.byteLength(text);
    return true;
  }

  /** Says that somebody uses it: see {@link JournalReplay}. */
  async touch(): Promise<void> {
    const now = new Date();
    await utimes(this.path, now, now).catch(() => {});
  }

  /** Closes it; what is in it stays. */
  async close(): Promise<void> {
    await this.#file.close().catch(() => {});
  }

  /** Removes the file. One that was taken over has another name by now, and stays. */
  async remove(): Promise<void> {
    await rm(this.path, { force: true }).catch(() => {});
  }

  async #hasItsName(): Promise<boolean> {
    try {
      const [named, ours] = await Promise.all([
        stat(this.path, { bigint: true }),
        this.#file.stat({ bigint: true }),
      ]);
      return named.ino === ours.ino && named.dev === ours.dev;
    } catch {
      return false;
    }
  }
}

/** Makes the names in a folder durable. Windows has no such call for folders. */
export async function syncFolder(folder: string): Promise<void> {
  if (process.platform === "win32") return;
  const handle = await open(folder, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
