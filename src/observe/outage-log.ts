/** A log that leaves out what follows from an outage, which has its own lines. */
import type { LogFn, Logger } from "pino";

/**
 * A log of the same lines without the warnings and errors whose `err` an outage covers.
 *
 * @param covers whether an error is a consequence of an outage
 */
export function withoutOutages(log: Logger, covers: (error: unknown) => boolean): Logger {
  const quiet = log.child({});
  for (const level of ["warn", "error"] as const) quiet[level] = unlessCovered(log, level, covers);
  return quiet;
}

function unlessCovered(
  log: Logger,
  level: "warn" | "error",
  covers: (error: unknown) => boolean,
): LogFn {
  return (...line: Parameters<LogFn>) => {
    const fields: unknown = line[0];
    const hasError = typeof fields === "object" && fields !== null && "err" in fields;
    if (!hasError || !covers(fields.err)) log[level](...line);
  };
}
