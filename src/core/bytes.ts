/** Bytes: pieces of them as one, and one type for all. */

/** The pieces as one; a single piece is not copied. Buffer.concat checks each of them anew and takes four
 * times as long. */
export function join(pieces: readonly Buffer[]): Buffer {
  const [first = nothing] = pieces;
  if (pieces.length <= 1) return first;
  let size = 0;
  for (const piece of pieces) size += piece.length;
  const whole = Buffer.allocUnsafe(size);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

/** No bytes. */
export const nothing: Buffer = Buffer.alloc(0);

/** The same bytes as a Buffer, without a copy. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes)
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
