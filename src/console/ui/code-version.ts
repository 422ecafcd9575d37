/** Code in one of several languages. */

/** One of several versions of some code. */
export interface CodeVersion {
  readonly id: string;
  readonly title: string;
  readonly code: string;
  /** What is copied, where it is more than what is shown. */
  readonly copied?: () => string;
}
