/** Which of several workers a process is. */

/** One of several workers under a supervisor. Its journal files begin with it, so that a worker that starts takes over
 * the files of its dead predecessor and leaves those of the others alone. */
export interface WorkerName {
  /** The same for all workers of one supervisor, and for no other's. */
  readonly supervisorId: string;
  /** From 1 on; no two workers have the same at the same time. */
  readonly number: number;
}
