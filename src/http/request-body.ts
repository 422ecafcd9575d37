/**
 * Bodies of requests to vendors: sent in pieces. Their memory is freed once the system has received
 * it.
 */
import { Readable } from "node:stream";
import type { Dispatcher } from "undici";
import { countedBytesMin, leaveMemory, useMemory } from "../core/body-memory.ts";

/** A body that is read while it is sent. */
export interface StreamedBody {
  /** Its length. */
  readonly bytes: number;
  /**
   * Reads it from its beginning. A piece of {@link countedBytesMin} or more is freed once the next
   * one is requested: by then the system has received it, or its reader has copied it.
   */
  open(): AsyncIterable<Uint8Array>;
}

/** The headers and the body of a request, in undici's form. */
export function contentOf(
  headers: Readonly<Record<string, string>>,
  body: readonly Uint8Array[] | StreamedBody,
): Pick<Dispatcher.DispatchOptions, "headers" | "body"> {
  if (!("open" in body)) {
    const isLarge = body.some(isCounted);
    if (body.length <= 1 && !isLarge) return { headers, body: body[0] ?? null };
    const length = body.reduce((sum, piece) => sum + piece.length, 0);
    return {
      headers: withLength(headers, length),
      body: isLarge ? sent(body) : Readable.from(body),
    };
  }
  return { headers: withLength(headers, body.bytes), body: asBody(body.open()) };
}

/** Sends pieces in their order. */
function sent(pieces: readonly Uint8Array[]): Readable {
  for (const piece of pieces) if (isCounted(piece)) useMemory(piece);
  return asBody(takenPieces(pieces));
}

/**
 * undici accepts any iterable, and needs less CPU for it than for a `Readable`, which would read
 * ahead.
 */
function asBody(pieces: AsyncIterable<Uint8Array>): Readable {
  return pieces as unknown as Readable;
}

/**
 * undici requests the piece after a large one once the system has received the large one: its
 * memory is then free. For a small piece this is unknown, so it is sent as a copy.
 */
async function* takenPieces(pieces: readonly Uint8Array[]): AsyncGenerator<Uint8Array, void> {
  for (const piece of pieces) yield isCounted(piece) ? piece : Buffer.from(piece);
  for (const piece of pieces) if (isCounted(piece)) leaveMemory(piece);
}

function isCounted({ length }: Uint8Array): boolean {
  return length >= countedBytesMin;
}

function withLength(
  headers: Readonly<Record<string, string>>,
  length: number,
): Record<string, string> {
  return { ...headers, "content-length": String(length) };
}
