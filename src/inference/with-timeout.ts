/** Waits for the database, but not for ever. */
import { databaseUnavailable } from "../database-lost.ts";

/**
 * Resolves as `work` does. A database that does not even fail, because it hangs or its network does, must
 * not hold a call up.
 *
 * @throws GatewayError SERVICE_UNAVAILABLE after `waitMs` milliseconds; what `work` throws
 */
export async function withTimeout<T>(waitMs: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(databaseUnavailable()), waitMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
