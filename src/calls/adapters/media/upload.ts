/**
 * Reads requests with files (`multipart/form-data`) while they arrive. Files are written to a
 * temporary file. A request is therefore complete and paid for before it is sent to its vendor, and
 * can be sent again to another one. The temporary file has no name once it is open: nothing remains
 * of it, even if the process is killed.
 *
 * The form is written anew for the vendor. If its bytes were passed on, a vendor that parses forms
 * differently could see another model or another count than the gateway.
 */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { type FileHandle, mkdir, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { Busboy, type BusboyFileStream } from "@fastify/busboy";
import { uploadMax } from "../../../config/upload-limits.ts";
import { countedBytesMin, freeMemory } from "../../../core/body-memory.ts";
import { joinBuffers } from "../../../core/bytes.ts";
import { ErrorCode, GatewayError } from "../../../core/errors.ts";
import { invalid } from "../../../core/validation.ts";
import type { StreamedBody } from "../../../http/request-body.ts";
import type { ReadAt } from "../../../provider/media/source.ts";

/** A file of a request. */
export interface UploadedFile {
  readonly name: string;
  readonly fileName: string;
  readonly contentType: string;
  readonly bytes: number;
  readonly readAt: ReadAt;
}

/** A request with files. Close it: that frees its disk space. */
export interface Upload {
  /** Why it cannot be used; undefined if it can. */
  readonly problem: GatewayError | undefined;
  /** A text field; undefined if there is none. */
  field(name: string): string | undefined;
  /** Text fields in all. */
  readonly fieldBytes: number;
  readonly fieldNames: readonly string[];
  readonly files: readonly UploadedFile[];
  /** The request for a vendor, with its name of the model. */
  forVendor(model: string): { readonly contentType: string; readonly body: StreamedBody };
  close(): Promise<void>;
}

/** Source of a request. */
export interface UploadSource {
  readonly pieces: AsyncIterable<Uint8Array>;
  /** Whether this reader is the only user of the pieces' memory and may free it. */
  readonly ownsPieces: boolean;
  /** With its boundary. */
  readonly contentType: string;
  /** The folder of temporary files. */
  readonly folder: string;
}

/** Reads a request to its end. Never rejects: {@link Upload.problem} says what is wrong with it. */
export async function readUpload(source: UploadSource): Promise<Upload> {
  const form = new FormUpload(source.folder);
  try {
    await form.read(source);
  } catch (error) {
    form.problem = problemOf(error);
  }
  return form;
}

function problemOf(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  if (error instanceof Error && "syscall" in error) return noRoom(error);
  const message = error instanceof Error ? error.message : "unreadable";
  return new GatewayError(ErrorCode.INVALID_REQUEST, `The form is malformed: ${message}`, {
    cause: error,
  });
}

/** The longest boundary in characters. RFC 2046 allows 70. */
const boundaryCharsMax = 200;

/** @throws GatewayError INVALID_REQUEST */
function checkBoundary(contentType: string): void {
  const [, inQuotes, plain = ""] = /;\s*boundary=(?:"([^"]*)"|([^;\s]*))/i.exec(contentType) ?? [];
  const { length } = inQuotes ?? plain;
  if (length > 0 && length <= boundaryCharsMax) return;
  const rule = `a boundary of 1 to ${boundaryCharsMax} characters`;
  throw new GatewayError(
    ErrorCode.INVALID_REQUEST,
    `The form is malformed: its header \`content-type\` needs ${rule}; SDKs send one`,
  );
}

/** A part: a text, or the place of a file in the temporary file. */
type Part =
  | { readonly name: string; readonly value: string }
  | {
      readonly name: string;
      readonly fileName: string;
      readonly contentType: string;
      readonly start: number;
      readonly end: number;
    };

class FormUpload implements Upload {
  problem: GatewayError | undefined;
  readonly #parts: Part[] = [];
  readonly #fields = new Map<string, string>();
  readonly #store: UploadStore;
  /** The end of the files so far. */
  #writing: Promise<void> = Promise.resolve();
  readonly #boundary = `uas-${randomUUID()}`;

  constructor(folder: string) {
    this.#store = new UploadStore(folder);
  }

  /** @throws GatewayError INVALID_REQUEST, REQUEST_TOO_LARGE; the parser's own errors */
  async read({ pieces, ownsPieces, contentType }: UploadSource): Promise<void> {
    checkBoundary(contentType);
    const parser = new Busboy({
      headers: { "content-type": contentType },
      limits: {
        fieldNameSize: 200,
        fieldSize: uploadMax.fieldBytes,
        parts: uploadMax.parts,
        headerPairs: 20,
      },
    });
    const ended = new Promise<void>((resolve, reject) => {
      parser.on("finish", resolve);
      parser.on("error", reject);
      parser.on("partsLimit", () => reject(tooManyParts()));
      // The parser's types promise names that parts may lack.
      parser.on("field", (name: string | undefined, value, _isNameCut, isCut) => {
        if (name === undefined) reject(namelessPart());
        else if (isCut) reject(fieldTooLong(name));
        else if (this.#fields.has(name) && !name.endsWith("[]")) reject(fieldTwice(name));
        else this.#addField(name, value);
      });
      parser.on("file", (name: string | undefined, file, fileName, _encoding, type) => {
        // The parser reports a form that ends inside a file. The file emits the same error, which
        // ends the process without a listener: a file without a name, or one that waits for earlier
        // files.
        file.on("error", () => {});
        if (name === undefined) {
          file.resume();
          return reject(namelessPart());
        }
        const part = { name, fileName, contentType: type, start: 0, end: 0 };
        this.#parts.push(part);
        // One after the other: small files are there before the one before them is written.
        this.#writing = this.#writing.then(() => this.#keep(file, part));
        this.#writing.catch(reject);
      });
    });
    // Reported below, also if feeding fails first. Bytes after a refusal are not read.
    const refused = new AbortController();
    ended.catch(() => refused.abort());
    const feeding = this.#feed(parser, { pieces, ownsPieces, refused: refused.signal });
    await Promise.race([feeding, ended]);
    await ended;
    await this.#writing;
    await this.#store.flushed();
  }

  field(name: string): string | undefined {
    return this.#fields.get(name);
  }

  get fieldNames(): readonly string[] {
    return [...this.#fields.keys()];
  }

  get fieldBytes(): number {
    let bytes = 0;
    for (const value of this.#fields.values()) bytes += Buffer.byteLength(value);
    return bytes;
  }

  get files(): readonly UploadedFile[] {
    return this.#parts.flatMap((part) => {
      if ("value" in part) return [];
      const { name, fileName, contentType, start, end } = part;
      const readAt: ReadAt = (position, length) =>
        this.#store.read(start + position, Math.min(length, end - start - position));
      return [{ name, fileName, contentType, bytes: end - start, readAt }];
    });
  }

  forVendor(model: string): { readonly contentType: string; readonly body: StreamedBody } {
    const store = this.#store;
    const pieces = this.#written(model);
    const bytes = pieces.reduce(
      (sum, piece) => sum + ("start" in piece ? piece.end - piece.start : piece.length),
      0,
    );
    const contentType = `multipart/form-data; boundary=${this.#boundary}`;
    async function* read(): AsyncIterable<Uint8Array> {
      for (const piece of pieces) {
        if ("start" in piece) yield* store.pieces(piece.start, piece.end);
        else yield piece;
      }
    }
    return { contentType, body: { bytes, open: read } };
  }

  close(): Promise<void> {
    return this.#store.close();
  }

  async #feed(
    parser: InstanceType<typeof Busboy>,
    {
      pieces,
      ownsPieces,
      refused,
    }: Pick<UploadSource, "pieces" | "ownsPieces"> & { readonly refused: AbortSignal },
  ): Promise<void> {
    let bytes = 0;
    for await (const piece of pieces) {
      if (refused.aborted) return;
      bytes += piece.length;
      if (bytes > uploadMax.bytes) throw uploadTooLarge();
      if (ownsPieces) this.#store.mayFree(piece);
      if (!parser.write(piece)) await once(parser, "drain", { signal: refused });
    }
    parser.end();
  }

  #addField(name: string, value: string): void {
    this.#fields.set(name, value);
    this.#parts.push({ name, value });
  }

  async #keep(file: BusboyFileStream, part: { start: number; end: number }): Promise<void> {
    part.start = this.#store.bytes;
    for await (const piece of file as AsyncIterable<Buffer>) await this.#store.write(piece);
    part.end = this.#store.bytes;
  }

  /** The parts as they are sent: texts, and ranges of the temporary file. */
  #written(model: string): (Buffer | { readonly start: number; readonly end: number })[] {
    const written = this.#parts.flatMap((part) => {
      const start = `--${this.#boundary}\r\ncontent-disposition: form-data; name="${quoted(part.name)}"`;
      if ("value" in part) {
        const value = part.name === "model" ? model : part.value;
        return [Buffer.from(`${start}\r\n\r\n${value}\r\n`)];
      }
      const { fileName, contentType } = part;
      const head = `${start}; filename="${quoted(fileName)}"\r\ncontent-type: ${contentType}\r\n\r\n`;
      return [Buffer.from(head), { start: part.start, end: part.end }, Buffer.from("\r\n")];
    });
    return [...written, Buffer.from(`--${this.#boundary}--\r\n`)];
  }
}

/** Quotes a name as browsers do: escapes the characters that would end it. */
function quoted(name: string): string {
  return name.replaceAll('"', "%22").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
}

/**
 * Bytes held in memory before a temporary file is used: for less, a file costs more than it saves.
 */
const memoryBytesMax = 1024 * 1024;

/** Bytes of the temporary file per read. */
const readBytes = 512 * 1024;

/**
 * Bytes in memory, or in a temporary file once there are many. Memory is freed as soon as its bytes
 * are in the file, or with the vendor: V8 would free it with its next full collection, and needed
 * one for each request of 25 MB, which took more than half of the CPU.
 */
class UploadStore {
  bytes = 0;
  readonly #folder: string;
  /** Memory of the request, each of a single piece. */
  readonly #freeable = new WeakSet<ArrayBufferLike>();
  /** The memory of what was written last: more of it may follow. */
  #last: ArrayBufferLike | undefined;
  #kept: Buffer[] = [];
  #keptBytes = 0;
  #opening: Promise<FileHandle> | undefined;
  /** The temporary file, once it is open. */
  #handle: FileHandle | undefined;
  #isClosed = false;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * Declares that only this upload uses the memory of a piece. The memory is freed if it contains
   * nothing else.
   */
  mayFree({ buffer, byteLength }: Uint8Array): void {
    if (byteLength === buffer.byteLength) this.#freeable.add(buffer);
  }

  /** @param piece behind the one before it, in the request too */
  async write(piece: Buffer): Promise<void> {
    this.#requireOpen();
    this.bytes += piece.length;
    this.#kept.push(piece);
    this.#keptBytes += piece.length;
    if (this.#keptBytes >= memoryBytesMax) await this.#flush();
  }

  /** Writes the rest of what is on disk in part. */
  async flushed(): Promise<void> {
    if (this.#handle !== undefined) await this.#flush();
    // The pieces are parts of larger ones, of which the rest is not needed.
    else this.#kept = [Buffer.concat(this.#kept)];
  }

  async read(position: number, length: number): Promise<Buffer> {
    if (length <= 0) return Buffer.alloc(0);
    if (this.#handle === undefined) {
      return joinBuffers(this.#kept).subarray(position, position + length);
    }
    const bytes = Buffer.allocUnsafe(length);
    const { bytesRead } = await this.#handle.read(bytes, 0, length, position);
    return bytes.subarray(0, bytesRead);
  }

  async *pieces(start: number, end: number): AsyncIterable<Buffer> {
    for (let at = start; at < end; ) {
      const piece = await this.read(at, Math.min(readBytes, end - at));
      if (piece.length === 0) throw new Error("a temporary file is shorter than it was");
      at += piece.length;
      yield piece;
      // The reader requests more once the system has taken a large piece: see
      // src/http/request-body.ts.
      if (this.#handle !== undefined && piece.length >= countedBytesMin) freeMemory(piece.buffer);
    }
  }

  /**
   * Also closes a file that is being opened: V8 would end the process if it finds an open one
   * without an owner.
   */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#kept = [];
    this.#handle = undefined;
    const handle = await this.#opening?.catch(() => undefined);
    await handle?.close();
  }

  /** Refuses what arrives after {@link close}. */
  #requireOpen(): void {
    if (this.#isClosed) throw new Error("the upload is closed");
  }

  async #flush(): Promise<void> {
    this.#opening ??= openNameless(this.#folder);
    const handle = await this.#opening;
    this.#requireOpen();
    this.#handle = handle;
    const kept = this.#kept;
    const bytes = this.#keptBytes;
    this.#kept = [];
    this.#keptBytes = 0;
    const { bytesWritten } = await handle.writev(kept);
    // The system writes less than it is given only if the disk is full.
    if (bytesWritten < bytes) throw noRoom(undefined);
    for (const { buffer } of kept) this.#written(buffer);
  }

  /**
   * Frees the memory before this one, if all of it is written: the parts of a piece come one after
   * the other.
   */
  #written(memory: ArrayBufferLike): void {
    const last = this.#last;
    if (memory === last || !this.#freeable.has(memory)) return;
    this.#last = memory;
    if (last !== undefined) freeMemory(last);
  }
}

/** The error if the temporary file cannot be written. */
function noRoom(cause: unknown): GatewayError {
  return new GatewayError(
    ErrorCode.SERVICE_UNAVAILABLE,
    "The gateway has no disk space for files now; try again later",
    { internal: "a temporary file in the data folder cannot be written", cause },
  );
}

/** Opens a file and removes its name. */
async function openNameless(folder: string): Promise<FileHandle> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, randomUUID());
  const handle = await open(path, "wx+", 0o600);
  try {
    await rm(path);
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** The error for a request that is too long. */
export function uploadTooLarge(): GatewayError {
  return new GatewayError(
    ErrorCode.REQUEST_TOO_LARGE,
    `The request is longer than ${uploadMax.bytes} bytes; send less`,
  );
}

function tooManyParts(): GatewayError {
  return invalid(undefined, `The form has more than ${uploadMax.parts} parts; send fewer`);
}

function namelessPart(): GatewayError {
  return invalid(undefined, "A part of the form has no name; send each with `name`");
}

function fieldTooLong(name: string): GatewayError {
  return invalid(name, `"${name}" is longer than ${uploadMax.fieldBytes} bytes; send less`);
}

function fieldTwice(name: string): GatewayError {
  return invalid(name, `"${name}" occurs twice in the form; send it once`);
}
