/**
 * Signals within this many milliseconds of the first are echoes: under npm, Ctrl-C arrives twice, from the terminal
 * and from npm.
 */
const echoMs = 300;

/** What to do with further signals. */
interface SignalOptions {
  /** Called before a second signal ends the process. Default: nothing. */
  readonly onSecond?: () => void;
  /** Called for each SIGHUP. Default: it counts as SIGTERM, for nobody but us would stop the embedded PostgreSQL. */
  readonly onHangUp?: () => void;
}

/** Resolves with the first SIGTERM, SIGINT or SIGHUP. A second one ends the process. */
export function firstSignal({
  onSecond = (): void => {},
  onHangUp,
}: SignalOptions = {}): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let firstMs: number | undefined;
    const onSignal = (signal: NodeJS.Signals): void => {
      if (firstMs !== undefined && performance.now() - firstMs > echoMs) {
        onSecond();
        process.exit(1);
      }
      firstMs ??= performance.now();
      resolve(signal);
    };
    process.on("SIGTERM", onSignal);
    process.on("SIGINT", onSignal);
    process.on("SIGHUP", onHangUp ?? onSignal);
  });
}
