/** Temporary files of downloads: hashed while they are written, then moved into the store. */
import { createHash, type Hash, randomUUID } from "node:crypto";
import { type FileHandle, mkdir, open, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { resultPendingMs } from "../core/limits.ts";
import { headBytes } from "./content-type.ts";
import { ResultFailure } from "./result.ts";

/** A complete, durable temporary file. */
export interface Spooled {
  readonly path: string;
  readonly bytes: number;
  /** In lower-case hexadecimal. */
  readonly sha256: string;
  /** Its first bytes, for {@link fileKind}. */
  readonly head: Buffer;
}

/** A temporary file that is being written. */
export class Spool {
  readonly path: string;
  readonly #handle: FileHandle;
  readonly #bytesMax: number;
  readonly #hash: Hash = createHash("sha256");
  #head: Buffer = Buffer.alloc(0);
  #bytes = 0;
  #isOpen = true;

  private constructor(path: string, handle: FileHandle, bytesMax: number) {
    this.path = path;
    this.#handle = handle;
    this.#bytesMax = bytesMax;
  }

  /** Creates a file in a folder; creates the folder if it is missing. */
  static async open(folder: string, bytesMax: number): Promise<Spool> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const path = join(folder, randomUUID());
    return new Spool(path, await open(path, "wx", 0o600), bytesMax);
  }

  /** Adds bytes. @throws ResultFailure `too_large` */
  async write(bytes: Uint8Array): Promise<void> {
    this.#bytes += bytes.length;
    if (this.#bytes > this.#bytesMax) throw tooLarge(this.#bytesMax);
    if (this.#head.length < headBytes) {
      this.#head = Buffer.concat([this.#head, bytes.subarray(0, headBytes - this.#head.length)]);
    }
    this.#hash.update(bytes);
    for (let at = 0; at < bytes.length; ) {
      at += (await this.#handle.write(bytes, at, bytes.length - at)).bytesWritten;
    }
  }

  /** Makes the file durable and closes it. */
  async finish(): Promise<Spooled> {
    await this.#handle.sync();
    await this.#close();
    const { path } = this;
    return { path, bytes: this.#bytes, sha256: this.#hash.digest("hex"), head: this.#head };
  }

  /** Removes the file; does nothing after the store has moved it. */
  async discard(): Promise<void> {
    await this.#close();
    await rm(this.path, { force: true });
  }

  async #close(): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    await this.#handle.close();
  }
}

/** The failure of a file above the size limit. */
export function tooLarge(bytesMax: number): ResultFailure {
  return new ResultFailure("too_large", `longer than ${bytesMax} bytes`, { isFinal: true });
}

const spoolName = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Removes temporary files that killed processes left behind. */
export async function removeStaleSpools(folder: string): Promise<void> {
  const names = await readdir(folder).catch(() => []);
  for (const name of names.filter((each) => spoolName.test(each))) {
    const path = join(folder, name);
    const facts = await stat(path).catch(() => undefined);
    if (facts !== undefined && Date.now() - facts.mtimeMs > resultPendingMs) {
      await rm(path, { force: true });
    }
  }
}
