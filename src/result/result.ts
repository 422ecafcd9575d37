/**
 * Result files: what a vendor made, copied to a store of ours and served under an address that nobody can
 * guess. Here is what others may know of it; result-files.ts does it.
 */
import type { Readable } from "node:stream";

/** Where the bytes are. */
export type ResultSource =
  | { readonly bytes: Uint8Array }
  | {
      /** Where to fetch them. https of a public address, unless it is the vendor's own origin. */
      readonly url: string;
      /** What to send there. It is not sent on to other origins. */
      readonly headers?: Readonly<Record<string, string>>;
      /** Where it may be sent on to, once: exact host names, or what they end in, with a leading dot. Default:
       * anywhere on the public internet, a few times. */
      readonly redirectHosts?: readonly string[];
      /** The vendor's configured `base_url`: its origin may be private, and without TLS. Default: none. */
      readonly vendorUrl?: string;
    };

/** Whose file it is, and what it is said to be. */
export interface ResultAbout {
  /** What the vendor says that it is. Default: what its reply says. What the bytes say counts more. */
  readonly contentType?: string;
  readonly accountId: string;
  readonly taskId: string;
  /** Default: in 7 days. */
  readonly expireTime?: Date;
  /** Ends it. Default: nothing does. */
  readonly signal?: AbortSignal;
}

/** A file that is stored, durably. */
export interface StoredResult {
  /** 26 characters that lead to it: whoever has them may read it. */
  readonly token: string;
  /** `{public address}/files/{token}.{extension}`. */
  readonly url: string;
  readonly contentType: string;
  readonly bytes: number;
  /** In lower-case hexadecimal. */
  readonly sha256: string;
  readonly expireTime: Date;
  /** How long it is, where it is a film or a sound that tells. Default: it does not. */
  readonly seconds?: number | undefined;
}

/** A file that an address leads to. */
export type FoundResult =
  | { readonly expired: true }
  | {
      readonly expired: false;
      readonly contentType: string;
      readonly extension: string;
      readonly bytes: number;
      readonly sha256: string;
      readonly expireTime: Date;
      /**
       * Reads from the byte `start` to the byte `end`, both included.
       *
       * @throws GatewayError where the store cannot be reached, or has lost it
       */
      open(range: ByteRange): Promise<Readable>;
    };

/** Places of bytes, both included. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** Keeps result files. */
export interface ResultFiles {
  /**
   * Copies a file into the store. The same bytes take room once. Calling it again makes another token.
   *
   * @throws ResultFailure
   * @throws GatewayError SERVICE_UNAVAILABLE where the database cannot be reached
   */
  store(source: ResultSource, about: ResultAbout): Promise<StoredResult>;
  /** Finds a file by the token of its address; `undefined`: never heard of, or forgotten. */
  find(this: void, token: string): Promise<FoundResult | undefined>;
}

/**
 * - `blocked`: its address is not of the public internet.
 * - `refused`: the other side answered, but not with a file.
 * - `unreachable`: no connection, or it broke.
 * - `timeout`: it took too long.
 * - `too_large`: it is longer than allowed.
 * - `storage`: our store could not take it.
 * - `aborted`: our own doing.
 */
export type ResultFailureKind =
  | "blocked"
  | "refused"
  | "unreachable"
  | "timeout"
  | "too_large"
  | "storage"
  | "aborted";

/** A file that could not be stored. The message is for the log: it may name hosts, never a query. */
export class ResultFailure extends Error {
  readonly kind: ResultFailureKind;
  /** Whether another try would fail in the same way. */
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
