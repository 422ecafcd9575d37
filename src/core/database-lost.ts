/** Tells "the database cannot be reached" from every other failure of a statement. */
import { ErrorCode, GatewayError } from "./errors.ts";

/** SQLSTATE classes: broken connections, no room for another one, a server that stops or starts. */
const lostStates = /^(?:08|53|57P)/;

/** Whether the database could not be reached or did not answer: the failure is none that the server reports,
 * or one by which it says so. */
export function isDatabaseLost(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof GatewayError) return false;
  const code = "code" in error && typeof error.code === "string" ? error.code : undefined;
  // What the server reports has a severity; by its form alone EPIPE would pass for an SQLSTATE.
  if ("severity" in error) return lostStates.test(code ?? "");
  // Failures of the network have a code, as do mistakes of ours (ERR_…); the driver's own have none.
  if (code !== undefined) return !code.startsWith("ERR_");
  return /connect|timeout|terminated/i.test(error.message);
}

/** What a caller is told while the database cannot be reached: 503, never a verdict. */
export function databaseUnavailable(cause?: unknown): GatewayError {
  return new GatewayError(
    ErrorCode.SERVICE_UNAVAILABLE,
    "the gateway cannot reach its database right now; try again in a moment",
    { cause },
  );
}

/** What a caller is told whose request waited too long behind others: the database is there, and has much to do. */
export function databaseBusy(): GatewayError {
  const text = "the gateway is busy right now; try again in a moment";
  return new GatewayError(ErrorCode.SERVICE_UNAVAILABLE, text);
}

/** What a caller is told of whose account too many requests wait already. */
export function tooManyWaiting(): GatewayError {
  return new GatewayError(
    ErrorCode.QUEUE_FULL,
    "too many requests of this account wait already; try again in a moment, and send fewer at once",
  );
}

/**
 * Waits for work on the database.
 *
 * @throws GatewayError SERVICE_UNAVAILABLE where it cannot be reached; other errors as they are.
 */
export async function answering<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw isDatabaseLost(error) ? databaseUnavailable(error) : error;
  }
}
