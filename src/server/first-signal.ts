/**
 * Signals within this many milliseconds of the first are echoes: under npm, Ctrl-C arrives twice, from the terminal
 * and from npm.
 */
const echoMs = 300;

/**
 * Resolves with the first SIGTERM or SIGINT. A second one ends the process.
 *
 * @param onSecond called before the process ends
 */
export function firstSignal(onSecond = (): void => {}): Promise<NodeJS.Signals> {
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
  });
}
