/** The signals that end a server. */

/** Signals that follow the first within this time are its echo, in milliseconds: Ctrl-C under npm comes
 * twice, from the terminal and from npm. */
const echoMs = 300;

/**
 * Resolves with the first signal; a second one, be it the same or the other, ends the process.
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
