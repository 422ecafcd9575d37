/** Names for what happens to an operation on its way, so that tests can kill a process there. */
import type { Batch } from "./batch.ts";

/** Told synchronously of each point that is passed: `hold.sent`. Nobody, in production. */
export type At = (point: string) => void;

/** An operation waits · its bytes are on their way · the database's answer is here and nobody knows yet. */
export type Stage = "queued" | "sent" | "answered";

/** Tells a point for each kind of operation in a batch. A release is a settlement of nothing. */
export function tellPoints(at: At, { settles, extends: grown, holds }: Batch, stage: Stage): void {
  if (settles.some(({ cost }) => cost !== "0")) at(`settle.${stage}`);
  if (settles.some(({ cost }) => cost === "0")) at(`release.${stage}`);
  if (grown.length > 0) at(`extend.${stage}`);
  if (holds.length > 0) at(`hold.${stage}`);
}
