/**
 * The signals that stop a server: the first one drains it, a second one ends it without a drain.
 */
import { closeSync, openSync } from "node:fs";

/**
 * Signals within this many milliseconds of the first are echoes: under npm, Ctrl-C arrives twice,
 * from the terminal and from npm.
 */
const echoMs = 300;

/**
 * Maximum duration of the last work after a second signal: stopping PostgreSQL takes less than one
 * second.
 */
const lastWorkMs = 10_000;

/** Handlers of other signals. */
interface StopOptions {
  /**
   * The last work after a second SIGTERM or SIGINT. The process exits with code 1 when it has
   * resolved.
   */
  readonly onSecond: () => Promise<void>;
  /** Called for each SIGHUP before the stop, unless the terminal of this process was closed. */
  readonly onHangUp: () => void;
}

/**
 * Resolves with the first SIGTERM or SIGINT, or with SIGHUP if the terminal was closed. A second
 * SIGTERM or SIGINT ends the process. SIGHUP never does (R-OPS-2): during a stop it is ignored, and
 * it does not count as the first of two.
 */
export function receiveStop({ onSecond, onHangUp }: StopOptions): Promise<NodeJS.Signals> {
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>();
  let isStopping = false;
  let firstMs: number | undefined;
  const stop = (signal: NodeJS.Signals): void => {
    isStopping = true;
    resolve(signal);
  };
  const onSignal = (signal: NodeJS.Signals): void => {
    stop(signal);
    firstMs ??= performance.now();
    if (performance.now() - firstMs > echoMs) endNow(onSecond);
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  process.on("SIGHUP", (signal) => {
    if (isStopping) return;
    if (hasLostTerminal()) stop(signal);
    else onHangUp();
  });
  return promise;
}

/**
 * Whether this process was started in a terminal that is closed. Then only this process would stop
 * the embedded PostgreSQL, and Ctrl-C could not reach it.
 */
function hasLostTerminal(): boolean {
  if (!process.stdin.isTTY && !process.stdout.isTTY) return false;
  try {
    closeSync(openSync("/dev/tty", "r"));
    return false;
  } catch {
    return true;
  }
}

/** Exits with code 1 after the last work. */
function endNow(lastWork: () => Promise<void>): void {
  const exit = (): void => process.exit(1);
  setTimeout(exit, lastWorkMs);
  void lastWork().then(exit, exit);
}
