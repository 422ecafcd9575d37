/**
 * Assigns journal files to processes. One process owns a data folder: the gateway, or the
 * supervisor of its workers. It gives each process a separate file, and the files of processes that
 * have ended. No process therefore has to detect if another one is alive.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { newId } from "../../core/uuid.ts";

/** The journal files of one process, by their names in the folder. */
export interface JournalNames {
  /** The file that it writes. */
  readonly own: string;
  /** The files of processes that have ended, which it replays. */
  readonly left: readonly string[];
}

/** Suffix of the files. */
export const journalSuffix = ".journal";

/** The folder of the journals in a data folder. */
export function journalFolder(dataDir: string): string {
  return join(dataDir, "journal");
}

/**
 * Assigns the journal files of a data folder. Create it once per gateway, before its first worker.
 */
export class JournalFiles {
  #left: string[];

  /** A folder that cannot be read counts as empty: the replay reports it. */
  constructor(folder: string) {
    this.#left = namesIn(folder).toSorted();
  }

  /** Assigns a new file, and all files that are left, to a new process. */
  assign(): JournalNames {
    return { own: `${newId()}${journalSuffix}`, left: this.#left.splice(0) };
  }

  /** Takes the files of a process back after it has ended. The next process replays them. */
  release({ own, left }: JournalNames): void {
    this.#left.push(own, ...left);
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).filter((name) => name.endsWith(journalSuffix));
  } catch {
    return [];
  }
}
