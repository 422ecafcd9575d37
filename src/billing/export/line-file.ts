/** Files of lines, compressed by gzip. */
import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";

/** A written file. */
export interface LineFile {
  /** Its compressed size. */
  readonly bytes: number;
  /** Of the compressed bytes, in lower-case hexadecimal. */
  readonly sha256: string;
}

/** Writes lines as they come; memory does not depend on their number. */
export async function writeLines(
  path: string,
  lines: AsyncIterable<string>,
  signal: AbortSignal,
): Promise<LineFile> {
  const hash = createHash("sha256");
  let bytes = 0;
  const count = async function* (chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of chunks) {
      hash.update(chunk);
      bytes += chunk.length;
      yield chunk;
    }
  };
  const target = createWriteStream(path, { mode: 0o600 });
  await pipeline(Readable.from(lines), createGzip(), count, target, { signal });
  return { bytes, sha256: hash.digest("hex") };
}

/** SHA-256 of a stream's bytes, in lower-case hexadecimal. */
export async function hashOf(stream: Readable): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(stream, hash);
  return hash.digest("hex");
}
