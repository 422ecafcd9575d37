/** Distinguishes "the database is unreachable" from other database errors. */
import { ErrorCode, GatewayError } from "./errors.ts";

/**
 * SQLSTATEs of a database that cannot serve at the moment: connection failure, insufficient
 * resources, a disk or system failure, a server that starts or stops, a standby. Also of a
 * statement that ran too long, waited too long for a lock, or was chosen to end a deadlock. A retry
 * may succeed.
 */
const lostStates = /^(?:08...|53...|58...|57P..|25006|57014|55P03|40001|40P01)$/;

/**
 * Whether a statement failed because the database is unreachable, overloaded, starting, stopping or
 * refuses connections. Also for the 503 error that {@link mapDatabaseLoss} makes of that.
 */
export function isDatabaseLost(error: unknown): boolean {
  if (error instanceof GatewayError)
    return error.cause !== undefined && isDatabaseLost(error.cause);
  if (!(error instanceof Error)) return false;
  const code = "code" in error && typeof error.code === "string" ? error.code : undefined;
  // Errors that PostgreSQL reports have a severity. Without this check, the form of EPIPE would
  // match an SQLSTATE.
  if ("severity" in error) {
    // Every error that ends or refuses a connection is fatal: a database that allows none (55000),
    // a changed password. No caller is at fault for that.
    return isFatal(error.severity) || lostStates.test(code ?? "");
  }
  // Network errors have a code, and so do Node's errors (ERR_…); errors of the driver have none.
  if (code !== undefined) return !code.startsWith("ERR_");
  return /connect|timeout|terminated/i.test(error.message);
}

/**
 * Whether the server reported that it rolled the statement back, for example after a lock timeout.
 * Otherwise the outcome is unknown. Also true for the 503 error that {@link mapDatabaseLoss} makes
 * of such an error.
 */
export function isRolledBack(error: unknown): boolean {
  if (error instanceof GatewayError) return isRolledBack(error.cause);
  return error instanceof Error && "severity" in error && error.severity === "ERROR";
}

function isFatal(severity: unknown): boolean {
  return severity === "FATAL" || severity === "PANIC";
}

/** The 503 error while the database is unreachable. */
export function databaseUnavailable(cause?: unknown): GatewayError {
  return new GatewayError(
    ErrorCode.SERVICE_UNAVAILABLE,
    "the gateway cannot reach its database right now; try again in a moment",
    { cause },
  );
}

/** The error for a request that waited too long in a database queue. */
export function databaseBusy(): GatewayError {
  const text = "the gateway is busy right now; try again in a moment";
  return new GatewayError(ErrorCode.SERVICE_UNAVAILABLE, text);
}

/** The error for an account that has too many requests queued already. */
export function accountQueueFull(): GatewayError {
  return new GatewayError(
    ErrorCode.QUEUE_FULL,
    "too many requests of this account are queued; try again in a moment, and send fewer at once",
  );
}

/**
 * Awaits database work and maps an unreachable database to a GatewayError.
 *
 * @throws GatewayError SERVICE_UNAVAILABLE if the database is unreachable; other errors unchanged
 */
export async function mapDatabaseLoss<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw isDatabaseLost(error) ? databaseUnavailable(error) : error;
  }
}
