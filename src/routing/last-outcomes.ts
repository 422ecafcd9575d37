/** The last outcomes of a route or credential in this process, for operators. */

/** The last failure. */
interface LastFailure {
  /** By `performance.now()`. */
  readonly atMs: number;
  /** The label of metrics, or a text for operators, without any text of the vendor. */
  readonly what: string;
}

/** The last success and the last failure. */
export class LastOutcomes {
  failure: LastFailure | undefined;
  /** `atMs`: by `performance.now()`. */
  success: { readonly atMs: number; readonly durationMs: number } | undefined;

  answered(durationMs: number): void {
    this.success = { atMs: performance.now(), durationMs };
  }

  failed(what: string): void {
    this.failure = { atMs: performance.now(), what };
  }
}
