/**
 * Decodes vendors' compressed replies. The gateway asks for none, but some vendors and proxies compress anyway. Decoded
 * as they come, at the pace of their reader, and within a ratio: a few kilobytes must not unpack to gigabytes.
 */
import type { Transform } from "node:stream";
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from "node:zlib";
import { decodedRatioMax } from "../core/limits.ts";
import { HttpFailure } from "./failure.ts";

/** Bytes that may be decoded whatever their ratio. */
const alwaysDecoded = 1024 * 1024;

/** How many encodings may be applied to a reply: a vendor's, and that of a proxy in front of it. */
const encodingsMax = 2;

const flush = { flush: constants.Z_SYNC_FLUSH };

/** By name. @param first the first byte, where it is known */
const decoders: Readonly<Record<string, (first: number | undefined) => Transform>> = {
  gzip: () => createGunzip(flush),
  "x-gzip": () => createGunzip(flush),
  // Some servers leave out the header of zlib, whose first byte names its method, 8.
  deflate: (first = 8) => ((first & 0x0f) === 8 ? createInflate(flush) : createInflateRaw(flush)),
  br: () => createBrotliDecompress(),
  zstd: () => createZstdDecompress(),
};

/** Gets the decoded reply. */
export interface DecoderUser {
  onDecoded(bytes: Buffer): void;
  onDecodedEnd(): void;
  /** The reply cannot be decoded, or unpacks to too much. */
  onUndecodable(failure: HttpFailure): void;
  /** More bytes can be taken after {@link ReplyDecoder.write} returned false. */
  onReady(): void;
}

/** Decodes one reply, of one encoding or more. */
export class ReplyDecoder {
  /** The last applied encoding first. */
  readonly #encodings: readonly string[];
  /** Their decoders, from the first byte on. */
  #stages: readonly Transform[] = [];
  readonly #user: DecoderUser;
  #encodedBytes = 0;

  constructor(encodings: readonly string[], user: DecoderUser) {
    this.#encodings = encodings;
    this.#user = user;
  }

  /** @returns `undefined` where the encoding is none, or unknown: then the reply stays as it is */
  static of(encoding: string | undefined, user: () => DecoderUser): ReplyDecoder | undefined {
    if (encoding === undefined) return undefined;
    const names = encoding.split(",").map((name) => name.trim().toLowerCase());
    const applied = names.filter((name) => name !== "" && name !== "identity");
    const isKnown = applied.every((name) => Object.hasOwn(decoders, name));
    if (applied.length === 0 || applied.length > encodingsMax || !isKnown) return undefined;
    return new ReplyDecoder(applied.toReversed(), user());
  }

  #begin(first: number | undefined): readonly Transform[] {
    const stages = this.#encodings.flatMap(
      (name, at) => decoders[name]?.(at === 0 ? first : undefined) ?? [],
    );
    for (const [at, stage] of stages.entries()) {
      this.#limit(stage);
      stage.once("error", (error) => this.#fail(error));
      const next = stages[at + 1];
      if (next !== undefined) stage.pipe(next);
    }
    const user = this.#user;
    stages[0]?.on("drain", () => user.onReady());
    stages.at(-1)?.once("end", () => user.onDecodedEnd());
    return stages;
  }

  /** Ends a stage that unpacks to too much; passes on what the last one unpacks. */
  #limit(stage: Transform): void {
    let decodedBytes = 0;
    stage.on("data", (bytes: Buffer) => {
      decodedBytes += bytes.length;
      const max = Math.max(alwaysDecoded, this.#encodedBytes * decodedRatioMax);
      if (decodedBytes > max) {
        stage.destroy(new HttpFailure("reset", `unpacks to over ${decodedRatioMax} times`));
      } else if (stage === this.#stages.at(-1)) this.#user.onDecoded(bytes);
    });
  }

  #fail(error: Error): void {
    this.destroy();
    const failure = new HttpFailure("reset", "the compressed reply is broken", error);
    this.#user.onUndecodable(error instanceof HttpFailure ? error : failure);
  }

  /** Takes received bytes. @returns whether more can be taken at once */
  write(bytes: Buffer): boolean {
    if (this.#encodedBytes === 0) this.#stages = this.#begin(bytes[0]);
    this.#encodedBytes += bytes.length;
    return this.#stages[0]?.write(bytes) ?? true;
  }

  /** All bytes were received. */
  end(): void {
    // Some replies have no body, and the header nevertheless.
    if (this.#encodedBytes === 0) this.#user.onDecodedEnd();
    else this.#stages[0]?.end();
  }

  /** Stops or resumes decoding, for a slow reader. */
  pause(isPaused: boolean): void {
    const last = this.#stages.at(-1);
    if (isPaused) last?.pause();
    else last?.resume();
  }

  /** Frees it. */
  destroy(): void {
    for (const stage of this.#stages) stage.destroy();
  }
}
