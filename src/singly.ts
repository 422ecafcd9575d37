/** Work that a process does by itself, again and again, never twice at once. */

/** See {@link singly}. */
export interface Single {
  /** Runs the job, unless it runs already; resolves when that run has ended. Never rejects. */
  (): Promise<void>;
  /** Waits for the run under way. */
  ended(): Promise<void>;
}

/** Makes a job run one at a time. @param failed told of each failure */
export function singly(job: () => Promise<unknown>, failed: (error: unknown) => void): Single {
  let running: Promise<void> | undefined;
  const runOnce = async (): Promise<void> => {
    try {
      await job();
    } catch (error) {
      failed(error);
    } finally {
      running = undefined;
    }
  };
  return Object.assign(() => (running ??= runOnce()), { ended: async () => running });
}
