/** Long runs that are ended from outside, and must not leave behind what they have started. */

/** Rejects when this process is interrupted. Race it with the work, and clean up in `finally`. */
export function whenInterrupted(): Promise<never> {
  const interrupted = Promise.withResolvers<never>();
  // It may reject while no caller waits for it.
  interrupted.promise.catch(() => {});
  for (const name of ["SIGINT", "SIGTERM"] as const) {
    process.once(name, () => interrupted.reject(new Error(`ended by ${name}`)));
  }
  return interrupted.promise;
}
