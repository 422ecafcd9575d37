/** Limits the wait for a database that does not answer. */
import { setAnswerTimeout } from "../../core/async.ts";
import { databaseUnavailable } from "../../core/database-lost.ts";

/** Options of {@link whileAnswering}. */
interface AnswerLimit<T> {
  /** Maximum time for which the database may answer no statement of the process. */
  readonly limitMs: number;
  /** Whether the database has answered any statement since the last check. */
  readonly hasAnswered: () => boolean;
  /** Gets the result of work that ended after its caller was refused. */
  readonly onLate: (result: T) => void;
}

/**
 * Waits for work of several statements as long as the database answers any statement: then it is
 * busy, and each statement has a separate limit.
 *
 * @param work gets a function that returns whether its caller was refused; then it must send
 * nothing more
 * @throws GatewayError SERVICE_UNAVAILABLE after `limitMs` without any answer
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
