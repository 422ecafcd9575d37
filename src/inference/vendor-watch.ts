/** How vendors did last, as one process sees it. */

/** What is known of a vendor since the process began. Times in milliseconds since 1970. */
export interface VendorStanding {
  /** The calls in flight now. */
  readonly inFlight: number;
  /** Its last failure. */
  readonly failure: { readonly atMs: number; readonly what: string } | undefined;
  /** Its last answer, and how long it took until the head of its reply. */
  readonly success: { readonly atMs: number; readonly durationMs: number } | undefined;
}

type Known = Omit<VendorStanding, "inFlight">;

const nothing: Known = { failure: undefined, success: undefined };

/** Notes it. */
export class VendorWatch {
  readonly #known = new Map<string, Known>();

  /** What is known of a vendor. */
  of(vendor: string): Known {
    return this.#known.get(vendor) ?? nothing;
  }

  /** It answered: with a reply, or with its judgement on the request. */
  answered(vendor: string, durationMs: number): void {
    this.#known.set(vendor, { ...this.of(vendor), success: { atMs: Date.now(), durationMs } });
  }

  /** It did not. @param what in the words of the metrics, without anything that it said */
  failed(vendor: string, what: string): void {
    this.#known.set(vendor, { ...this.of(vendor), failure: { atMs: Date.now(), what } });
  }
}
