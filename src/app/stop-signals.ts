/**
 * The signals that stop a server: the first one drains it, a second one ends it without a drain.
 */

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

/** Handlers of further signals. */
interface StopOptions {
  /**
   * The last work after a second SIGTERM or SIGINT. The process exits with code 1 when it has
   * resolved.
   */
  readonly onSecond: () => Promise<void>;
  /**
   * Called for each SIGHUP before the stop. By default SIGHUP stops, because only this process
   * would stop the embedded PostgreSQL.
   */
  readonly onHangUp?: () => void;
}

/**
 * Resolves with the first SIGTERM, SIGINT or SIGHUP. A second SIGTERM or SIGINT ends the process.
 * SIGHUP never does (R-OPS-2): during a stop it is ignored, and it does not count as the first of
 * two.
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
    if (onHangUp === undefined) stop(signal);
    else onHangUp();
  });
  return promise;
}

/** Exits with code 1 after the last work. */
function endNow(lastWork: () => Promise<void>): void {
  const exit = (): void => process.exit(1);
  setTimeout(exit, lastWorkMs);
  void lastWork().then(exit, exit);
}
