/** Limits the wait for a database that answers nobody. */
import { setAnswerTimeout } from "../../core/async.ts";
import { databaseUnavailable } from "../../core/database-lost.ts";

/** Options of {@link whileAnswering}. */
interface AnswerLimit<T> {
  /** How long the database may answer nobody, in milliseconds. */
  readonly limitMs: number;
  /** Whether the database has answered anybody since the last question. */
  readonly hasAnswered: () => boolean;
  /** Gets the result of work that ended after its caller was refused. */
  readonly onLate: (result: T) => void;
}

/**
 * Waits for work of several statements as long as the database answers anybody: then it is busy, and each statement has a
 * limit of its own.
 *
 * @param work gets a function that says whether its caller was refused; then it must send nothing more
 * @throws GatewayError SERVICE_UNAVAILABLE after `limitMs` without an answer to anybody
 */
export async function whileAnswering<T>(
  { limitMs, hasAnswered, onLate }: AnswerLimit<T>,
  work: (isRefused: () => boolean) => Promise<T>,
): Promise<T> {
  let isRefused = false;
  const { promise: refused, reject } = Promise.withResolvers<never>();
  const refuse = (): void => {
    isRefused = true;
    reject(databaseUnavailable());
  };
  const clear = setAnswerTimeout(refuse, limitMs, hasAnswered);
  const working = work(() => isRefused);
  try {
    return await Promise.race([working, refused]);
  } catch (error) {
    if (isRefused) void working.then(onLate, () => {});
    throw error;
  } finally {
    clear();
  }
}
