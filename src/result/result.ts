/**
 * The interface of result files: a vendor's output, copied to the gateway's store and served at an
 * address that cannot be guessed. result-files.ts implements it.
 */
import type { Readable } from "node:stream";

/** The source of a file: its bytes, or its address. */
export type ResultSource =
  | { readonly bytes: Uint8Array }
  | {
      /**
       * The address of the file: https and public, unless it is on the vendor's configured origin.
       */
      readonly url: string;
      /** Request headers. They are not sent to other origins. */
      readonly headers?: Readonly<Record<string, string>>;
      /**
       * Hosts of one allowed redirect: exact names, or suffixes with a leading dot. By default a
       * few redirects, anywhere on the public internet.
       */
      readonly redirectHosts?: readonly string[];
      /**
       * The vendor's configured `base_url`: its origin may be private, and without TLS. None by
       * default.
       */
      readonly vendorUrl?: string;
    };

/** The owner of a file, and its declared type. */
export interface ResultAbout {
  /**
   * The type that the vendor declares. The type of the download by default. The file's signature
   * takes precedence.
   */
  readonly contentType?: string;
  readonly accountId: string;
  readonly taskId: string;
  /** In 7 days by default. */
  readonly expireTime?: Date;
  /** Aborts the store. Never by default. */
  readonly signal?: AbortSignal;
}

/** A file that is durably stored. */
export interface StoredResult {
  /** 26 characters that grant access: every client that has them may read the file. */
  readonly token: string;
  /** `{public address}/files/{token}.{extension}`. */
  readonly url: string;
  readonly contentType: string;
  readonly bytes: number;
  /** In lower-case hexadecimal. */
  readonly sha256: string;
  readonly expireTime: Date;
  /** The length of a video or audio file. Unknown by default. */
  readonly seconds?: number | undefined;
}

/** A file found by its token. */
export type FoundResult =
  | { readonly expired: true }
  | {
      readonly expired: false;
      readonly contentType: string;
      readonly extension: string;
      readonly bytes: number;
      readonly sha256: string;
      /** Time until it expires, by the database's clock. */
      readonly leftMs: number;
      /**
       * Reads from the byte `start` to the byte `end`, both included.
       *
       * @throws GatewayError if the store cannot be reached, or has lost it
       */
      open(range: ByteRange): Promise<Readable>;
    };

/** A range of bytes, both ends included. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** Stores and finds result files. */
export interface ResultFiles {
  /**
   * Copies a file into the store. Equal bytes are stored once; each call creates another token.
   *
   * @throws ResultFailure
   * @throws GatewayError SERVICE_UNAVAILABLE if the database cannot be reached
   */
  store(source: ResultSource, about: ResultAbout): Promise<StoredResult>;
  /**
   * Finds a file by the token of its address; undefined if it is unknown, or was deleted after its
   * expiry.
   */
  find(this: void, token: string): Promise<FoundResult | undefined>;
}

/**
 * - `blocked`: its address is not on the public internet.
 * - `refused`: the server answered, but without a file.
 * - `unreachable`: no connection, or it broke.
 * - `timeout`: a deadline passed.
 * - `too_large`: it is longer than allowed.
 * - `storage`: the gateway's store could not save it.
 * - `aborted`: its caller ended it.
 */
export type ResultFailureKind =
  | "blocked"
  | "refused"
  | "unreachable"
  | "timeout"
  | "too_large"
  | "storage"
  | "aborted";

/**
 * A file that could not be stored. The message is for the log: it may name hosts, never a query.
 */
export class ResultFailure extends Error {
  readonly kind: ResultFailureKind;
  /** Whether another attempt would fail in the same way. */
  readonly isFinal: boolean;

  constructor(
    kind: ResultFailureKind,
    message: string,
    { isFinal = false, cause }: { isFinal?: boolean; cause?: unknown } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "ResultFailure";
    this.kind = kind;
    this.isFinal = isFinal;
  }
}
