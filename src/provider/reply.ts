/** The reply of a vendor: its head, and a body that is read at the pace of its reader. */

/** The vendor's reply, without the operator's credential. */
export interface VendorReply {
  readonly status: number;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: VendorBody;
}

/** A reply body, read as `while (await body.ready()) use(body.take())`. */
export interface VendorBody {
  /**
   * Resolves to whether data is available; false at the end. Rejects with HttpFailure if the reply
   * broke. One reader at a time.
   */
  ready(): Promise<boolean>;
  /** The pieces received so far. */
  take(): readonly Buffer[];
  /** The whole body; rejects with HttpFailure beyond `bytesMax`. */
  whole(bytesMax: number): Promise<Buffer>;
  /** Stops the vendor's reply if it has not ended. */
  cancel(): void;
}

/** A body that is there at once. */
export function bufferedBody(bytes: Buffer): VendorBody {
  let isTaken = false;
  return {
    async ready() {
      const isThere = !isTaken && bytes.length > 0;
      isTaken = true;
      return isThere;
    },
    take: () => [bytes],
    whole: async () => bytes,
    cancel: () => {},
  };
}
