/**
 * Identifies one of several workers under a supervisor. Its journal files start with this name, so that a restarted
 * worker takes over the files of its predecessor and leaves the other workers' files alone.
 */
export interface WorkerName {
  /** The same for all workers of a supervisor; unique to that supervisor. */
  readonly supervisorId: string;
  /** From 1; no two running workers have the same number. */
  readonly number: number;
}
