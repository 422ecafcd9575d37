/** Failpoints: named points of an operation where tests kill the process, to prove that no money is lost. */
import type { Batch } from "./batch.ts";

/** Called synchronously at each point with its name, such as `hold.sent`. Never set in production. */
export type Failpoint = (point: string) => void;

/** The operation waits · its bytes were written · the database has answered, and no caller knows yet. */
export type Stage = "queued" | "sent" | "answered";

/** Calls the failpoint for each kind of operation in a batch. A release is a settlement with cost 0. */
export function hitFailpoints(
  at: Failpoint,
  { settles, extends: grown, holds }: Batch,
  stage: Stage,
): void {
  if (settles.some(({ cost }) => cost !== "0")) at(`settle.${stage}`);
  if (settles.some(({ cost }) => cost === "0")) at(`release.${stage}`);
  if (grown.length > 0) at(`extend.${stage}`);
  if (holds.length > 0) at(`hold.${stage}`);
}
