/**
 * The reserve of a settlement journal: a file with nothing but space, which becomes a file of the journal when the disk
 * takes no other. So a disk that fills up while the database is away costs none of the calls under way. This requires a
 * file system that overwrites in place (ext4, XFS).
 */
import { rm, statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { makeFolder } from "../../core/files.ts";
import { Segment } from "./journal-segment.ts";

/** Options of {@link JournalReserve}. */
export interface ReserveOptions {
  /** The file while it is not in use. */
  readonly path: string;
  /** The space that it keeps, in bytes. */
  readonly bytes: number;
  /** Called when the space could not be allocated; once, until it can be again. */
  readonly onMissing: (error: unknown) => void;
}

/** The reserve of one journal. */
export class JournalReserve {
  readonly #options: ReserveOptions;
  /** The file while it is not in use. */
  #free: Segment | undefined;
  /** The file while the journal uses it. */
  #used: Segment | undefined;
  #isMissing = false;
  #isClosed = false;
  /** The end of what was asked for last: one thing at a time. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: ReserveOptions) {
    this.#options = options;
  }

  /** Whether {@link take} can succeed now. */
  get isFree(): boolean {
    return this.#free !== undefined;
  }

  /** Makes sure that there is a reserve, and marks it as in use by this process. Never rejects. */
  keep(): Promise<void> {
    return this.#next(async () => {
      if (this.#isClosed || this.#used !== undefined) return;
      if (await this.#free?.touch()) return;
      // There is none yet, or another process took this one for dead, and removed it.
      await this.#free?.close();
      this.#free = undefined;
      try {
        this.#free = await this.#create();
        this.#isMissing = false;
      } catch (error) {
        if (!this.#isMissing) this.#options.onMissing(error);
        this.#isMissing = true;
      }
    });
  }

  /** @throws where there is too little space: the reserve must not take the last of it */
  async #create(): Promise<Segment> {
    const { path, bytes } = this.#options;
    const folder = dirname(path);
    await makeFolder(folder);
    const { bavail, bsize } = await statfs(folder);
    if (bavail * bsize < 2 * bytes) throw new Error(`the disk has ${bavail * bsize} bytes left`);
    // One that could not be turned into a file of the journal.
    await rm(path, { force: true });
    return Segment.create(path, bytes);
  }

  /** Turns the reserve into a file of the journal. `undefined`: there is none, or it is in use. Never rejects. */
  take(path: string): Promise<Segment | undefined> {
    return this.#next(async () => {
      const segment = this.#free;
      if (segment === undefined) return undefined;
      this.#free = undefined;
      try {
        await segment.rename(path);
      } catch {
        // Removed, or the disk is broken: another one is made with the next `keep`.
        await segment.remove();
        return undefined;
      }
      this.#used = segment;
      return segment;
    });
  }

  /** Whether the journal has this file from {@link take}. */
  owns(segment: Segment): boolean {
    return segment === this.#used;
  }

  /** Takes the file back, whose settlements the database has. Never rejects. */
  giveBack(segment: Segment): Promise<void> {
    return this.#next(async () => {
      this.#used = undefined;
      if (!segment.isBroken && !this.#isClosed && (await this.#clear(segment))) {
        this.#free = segment;
      } else {
        await segment.remove();
      }
    });
  }

  /** Returns whether the file is a reserve again. */
  async #clear(segment: Segment): Promise<boolean> {
    try {
      // The name first: text that is erased in part must not be replayed.
      await segment.rename(this.#options.path);
      await segment.erase();
      return true;
    } catch {
      return false;
    }
  }

  /** Gives its space back to the disk, unless the journal uses it. */
  close(): Promise<void> {
    return this.#next(async () => {
      this.#isClosed = true;
      await this.#free?.remove();
      this.#free = undefined;
    });
  }

  #next<T>(work: () => Promise<T>): Promise<T> {
    const next = this.#last.then(work);
    this.#last = next;
    return next;
  }
}
