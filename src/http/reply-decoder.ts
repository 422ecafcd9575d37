/**
 * Decodes vendors' compressed replies. The gateway requests no compression, but some vendors and
 * proxies compress anyway. Replies are decoded as they arrive, at the pace of their reader, and
 * within a ratio: a few kilobytes must not unpack to gigabytes. Not undici's interceptor: it is
 * experimental, wraps every call, and limits the size instead of the ratio.
 */
import type { Transform } from "node:stream";
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createZstdDecompress,
} from "node:zlib";
import { decodedRatioMax } from "../core/limits.ts";
import { HttpFailure } from "./failure.ts";

/** Bytes that may be decoded at any ratio. */
const alwaysDecoded = 1024 * 1024;

const flush = { flush: constants.Z_SYNC_FLUSH };

const decoders: Readonly<Record<string, () => Transform>> = {
  gzip: () => createGunzip(flush),
  "x-gzip": () => createGunzip(flush),
  deflate: () => createInflate(flush),
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

/** Decodes one reply. */
export class ReplyDecoder {
  readonly #stream: Transform;
  readonly #user: DecoderUser;
  #encodedBytes = 0;

  /**
   * @returns undefined if the encoding is absent, unknown, or a list of several: then the reply
   * stays unchanged
   */
  static of(encoding: string | undefined, user: () => DecoderUser): ReplyDecoder | undefined {
    const name = encoding?.trim().toLowerCase() ?? "";
    const create = Object.hasOwn(decoders, name) ? decoders[name] : undefined;
    return create && new ReplyDecoder(create(), user());
  }

  private constructor(stream: Transform, user: DecoderUser) {
    this.#stream = stream;
    this.#user = user;
    let decodedBytes = 0;
    stream.on("data", (bytes: Buffer) => {
      decodedBytes += bytes.length;
      const max = Math.max(alwaysDecoded, this.#encodedBytes * decodedRatioMax);
      if (decodedBytes <= max) user.onDecoded(bytes);
      else
        stream.destroy(
          new HttpFailure("reset", `decompresses to over ${decodedRatioMax} times its size`),
        );
    });
    stream.on("drain", () => user.onReady());
    stream.once("end", () => user.onDecodedEnd());
    stream.once("error", (error) => {
      const failure = new HttpFailure("reset", "the compressed reply is broken", error);
      user.onUndecodable(error instanceof HttpFailure ? error : failure);
    });
  }

  /**
   * Takes received bytes.
   *
   * @returns whether more can be taken at once
   */
  write(bytes: Buffer): boolean {
    this.#encodedBytes += bytes.length;
    return this.#stream.write(bytes);
  }

  /** All bytes were received. */
  end(): void {
    // Some replies have no body, but have the header.
    if (this.#encodedBytes === 0) this.#user.onDecodedEnd();
    else this.#stream.end();
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
