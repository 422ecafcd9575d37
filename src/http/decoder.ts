/**
 * Decodes vendors' compressed replies. The gateway asks for none, but some vendors and proxies compress anyway. Decoded
 * as they come, at the pace of their reader, and within a ratio: a few kilobytes must not unpack to gigabytes.
 */
import type { Transform } from "node:stream";
import { constants, createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { decodedRatioMax } from "../config/limits.ts";
import { HttpFailure } from "./failure.ts";

/** Bytes that may be decoded whatever their ratio. */
const alwaysDecoded = 1024 * 1024;

const flush = { flush: constants.Z_SYNC_FLUSH };

const decoders: Readonly<Record<string, () => Transform>> = {
  gzip: () => createGunzip(flush),
  "x-gzip": () => createGunzip(flush),
  deflate: () => createInflate(flush),
  br: () => createBrotliDecompress(),
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

/** Decodes one reply. */
export class ReplyDecoder {
  readonly #stream: Transform;
  readonly #user: DecoderUser;
  #encodedBytes = 0;
  #decodedBytes = 0;

  constructor(stream: Transform, user: DecoderUser) {
    this.#stream = stream;
    this.#user = user;
    stream.on("data", (bytes: Buffer) => {
      this.#decodedBytes += bytes.length;
      const max = Math.max(alwaysDecoded, this.#encodedBytes * decodedRatioMax);
      if (this.#decodedBytes <= max) user.onDecoded(bytes);
      else stream.destroy(new HttpFailure("reset", `unpacks to over ${decodedRatioMax} times`));
    });
    stream.on("drain", () => user.onReady());
    stream.once("end", () => user.onDecodedEnd());
    stream.once("error", (error) => {
      const failure = new HttpFailure("reset", "the compressed reply is broken", error);
      user.onUndecodable(error instanceof HttpFailure ? error : failure);
    });
  }

  /** @returns `undefined` where the encoding is none, or unknown: then the reply stays as it is */
  static of(encoding: string | undefined, user: () => DecoderUser): ReplyDecoder | undefined {
    if (encoding === undefined) return undefined;
    const create = decoders[encoding.trim().toLowerCase()];
    return create && new ReplyDecoder(create(), user());
  }

  /** Takes received bytes. @returns whether more can be taken at once */
  write(bytes: Buffer): boolean {
    this.#encodedBytes += bytes.length;
    return this.#stream.write(bytes);
  }

  /** All bytes were received. */
  end(): void {
    if (this.#encodedBytes > 0) this.#stream.end();
    else {
      // Some replies have no body, and the header nevertheless.
      this.#stream.destroy();
      this.#user.onDecodedEnd();
    }
  }

  /** Stops or resumes decoding, for a slow reader. */
  pause(isPaused: boolean): void {
    if (isPaused) this.#stream.pause();
    else this.#stream.resume();
  }

  /** Frees it. */
  destroy(): void {
    this.#stream.destroy();
  }
}
