import { setFlagsFromString } from "node:v8";

/**
 * Sets V8 flags for garbage collection. Call it before the first request.
 *
 * - External memory (buffers) may grow in proportion to the heap. By default 64 MiB of buffers,
 *   live or dead, start a full collection that walks the gateway's 55 MiB of live objects: with
 *   bodies of 1 MB that was every thirtieth request and half of all CPU. With a limit proportional
 *   to heap plus buffers it is every sixtieth to hundredth request, for some 20 MiB more resident
 *   memory under such a load.
 * - The heap may grow by three quarters of its live size. By default it grew to more than three
 *   times as much: with ten thousand tasks in flight, 370 MiB resident instead of 285. A full
 *   collection runs every 15 s instead of 75 s; with streams at full speed twice as often, for 1 %
 *   of CPU; with JSON replies and bodies of 1 MB as often as before.
 * - Buffers are freed by the thread that collects, at once. A helper thread would free them later.
 *   Meanwhile they counted as used and started full collections, and their memory returned to this
 *   thread through malloc's locks: 1.0 to 1.3 times the CPU for floods, and longer pauses.
 * - A collection of the young generation does not lower the limit at which the next full one
 *   starts: it did so in each flood, which then had a full collection every 0.8 s.
 */
export function setV8Flags(): void {
  setFlagsFromString("--external-memory-accounted-in-global-limit");
  setFlagsFromString("--heap-growing-percent=75");
  setFlagsFromString("--no-concurrent-array-buffer-sweeping");
  // Node.js 24 has V8 13, which prints an error for unknown flags.
  if (Number.parseInt(process.versions.v8, 10) < 14) return;
  setFlagsFromString("--external-memory-max-growing-factor=3");
  setFlagsFromString("--no-scavenger-updates-allocation-limit");
}
