/** Joins the pieces of a read in memory that is used again for the next one. */
import { join } from "../bytes.ts";

/** From how many bytes on memory is used again: smaller buffers come from Node's own pool. */
const reusedBytesMin = 8 * 1024;

/** How much memory is taken first, in bytes: two full reads of a socket. */
const firstBytes = 128 * 1024;

/**
 * Memory for one stream. A flood of events comes in reads of 64 KiB: fresh memory for each of them costs
 * an eighth of what relaying them costs, most of it in the system, which must clear its pages.
 */
export class Gather {
  #memory: Buffer | undefined;
  /** Whether the last read was: the next one will be, too, and no memory is taken ahead of it. */
  #isKept = false;

  /** The pieces as one, valid until the next call; for longer, say {@link keep}. */
  join(pieces: readonly Buffer[]): Buffer {
    if (pieces.length <= 1) return join(pieces);
    let size = 0;
    for (const piece of pieces) size += piece.length;
    if (size < reusedBytesMin) return join(pieces);
    if (this.#memory === undefined || this.#memory.length < size) {
      this.#memory = Buffer.allocUnsafeSlow(this.#isKept ? size : Math.max(firstBytes, size));
    }
    let at = 0;
    for (const piece of pieces) {
      this.#memory.set(piece, at);
      at += piece.length;
    }
    return this.#memory.subarray(0, size);
  }

  /** Leaves `bytes` as they are for good, where they lie in this memory. */
  keep(bytes: Buffer): void {
    this.#isKept = bytes.buffer === this.#memory?.buffer;
    if (this.#isKept) this.#memory = undefined;
  }
}
