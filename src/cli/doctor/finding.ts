/** Findings of `uas doctor`. */

/**
 * Result of one check.
 *
 * - `ok`: as it should be.
 * - `skipped`: could not be checked here.
 * - `warning`: works, but should be changed.
 * - `problem`: calls fail, or will.
 */
export type Result = "ok" | "skipped" | "warning" | "problem";

/** A finding, with its remedy. */
export interface Finding {
  /** The checked part, such as `database`. */
  readonly check: string;
  readonly result: Result;
  readonly text: string;
  /** The action of the operator; empty if none is needed. */
  readonly remedy: string;
}

/** Creates the findings of one check. */
export function findings(check: string) {
  const of =
    (result: Result) =>
    (text: string, remedy = ""): Finding => ({ check, result, text, remedy });
  return { ok: of("ok"), skipped: of("skipped"), warning: of("warning"), problem: of("problem") };
}
