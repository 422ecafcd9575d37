/** Answers of vendors that arrive while the database is away: see answer-journal.test.ts. Needs no test runner. */
import type { Submitted } from "../../src/provider/task.ts";

/** The content of results, which no file may show. */
export const picture = "a picture of a customer";

/** Seals the answers. */
export const masterKey = Buffer.alloc(32, 7);

const files = [{ bytes: Buffer.from(picture), contentType: "image/png" }];

/** An answer, and whether the database has stored that there is a result before it goes away. */
interface Answer {
  readonly submitted: Submitted;
  readonly isStoredFirst?: boolean;
}

/** By what they are. */
export const answers = {
  "that it has the task": { submitted: { vendorTaskId: "v-1" } },
  "with the result": { submitted: { done: { files, text: picture } } },
  "with rows of its own": {
    submitted: {
      vendorTaskId: "v-1",
      done: { files: [], text: picture, rows: { word: "kept" }, inSameTransaction: async () => {} },
    },
  },
  "with a result that is being copied": { submitted: { done: { files } }, isStoredFirst: true },
} as const satisfies Readonly<Record<string, Answer>> as Readonly<Record<AnswerKind, Answer>>;

/** The kinds of answers. */
export type AnswerKind =
  | "that it has the task"
  | "with the result"
  | "with rows of its own"
  | "with a result that is being copied";
