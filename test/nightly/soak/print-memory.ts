/**
 * The long form of the memory soak: an hour by default, with the promises that only time can prove.
 */
import { withServer } from "../fuzz/server.ts";
import { startWorld } from "../fuzz/world.ts";
import { startReceiver } from "../../support/receiver.ts";
import { createContainer } from "./container.ts";
import { handlesKept, type Sample, soakMemory, type SoakReport } from "./memory.ts";

/** Resident memory may grow by so much per hour after the warm-up, in MB. */
const rssSlopeMax = 1;

/** The event loop may be late by so much in 99 of 100 cases, in milliseconds. */
const delayMax = 50;

/**
 * The variables by which an allocator is chosen and set: those of glibc, and the one that preloads
 * another allocator. Missing ones are set like in `npm start`.
 */
const allocatorVariables = [
  "MALLOC_ARENA_MAX",
  "MALLOC_MMAP_THRESHOLD_",
  "MALLOC_TRIM_THRESHOLD_",
  "LD_PRELOAD",
];

/**
 * Pause of each concurrent client before its next request: about 60 requests a second. Without it
 * the clients, vendors and database of the same machine would keep the event loop waiting for a
 * processor. The warm-up has no pause.
 */
const pauseMs = 150;

/** Heap of the gateway in MB, and the maximum of the process: the memory of a small container. */
const heapMb = 256;
const rssMax = 700;

/**
 * Runs it, prints each measurement, and sets the exit code. The {@link allocatorVariables} of this
 * process are the gateway's, so that allocators can be compared.
 */
export async function printMemory(seed: number, seconds: number): Promise<void> {
  if (!Number.isSafeInteger(seconds) || seconds < 10) {
    throw new Error("--seconds must be a whole number from 10");
  }
  const variables = Object.fromEntries(
    allocatorVariables.flatMap((name) => {
      const value = process.env[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
  const container = createContainer(rssMax * 1e6);
  const limited = container ? "a container" : "resident memory (no control group can be created)";
  print(
    `seed ${seed}, ${seconds} s, heap ${heapMb} MB, ${limited} of ${rssMax} MB, ${JSON.stringify(variables)}`,
  );
  await withServer(async (databaseUrl) => {
    const receiver = await startReceiver();
    const flags = [`--max-old-space-size=${heapMb}`];
    const pidFile = container?.processes;
    const world = await startWorld(databaseUrl, { flags, variables, pidFile });
    try {
      const everySeconds = Math.max(1, Math.min(10, seconds / 30));
      const callbackUrl = `${receiver.origin}/hook`;
      const options = {
        seconds,
        warmUpSeconds: seconds / 3,
        compilesEarly: true,
        seed,
        lanes: 12,
        pauseMs,
        everySeconds,
        callbackUrl,
        onSample: printSample,
      };
      const report = await soakMemory(world, options);
      const problems = problemsOf(report, seconds);
      print(
        `${report.requests} requests: resident memory ${report.rssSlopePerHour.toFixed(2)} MB/h, at most ${report.rssMax.toFixed(0)} MB; heap ${report.heapGrowth.toFixed(1)} MB more; ${report.handles.before} handles before, ${report.handles.after} after; event loop p99 ${report.delayP99Ms.toFixed(1)} ms`,
      );
      for (const problem of problems) print(`WRONG: ${problem}`);
      if (problems.length > 0) process.exitCode = 1;
    } finally {
      await world.close();
      await receiver.close();
      container?.remove();
    }
  });
}

/** Returns broken promises. Slopes and delays of less than an hour are only printed. */
function problemsOf(report: SoakReport, seconds: number): string[] {
  const { rssSlopePerHour, delayP99Ms, handles, listeners, errors } = report;
  return [
    ...(seconds >= 3_600 && rssSlopePerHour > rssSlopeMax
      ? [`resident memory grows by ${rssSlopePerHour.toFixed(2)} MB/h`]
      : []),
    ...(seconds >= 3_600 && delayP99Ms > delayMax
      ? [`the event loop is ${delayP99Ms} ms late`]
      : []),
    ...(report.rssMax > rssMax ? [`resident memory was ${report.rssMax} MB`] : []),
    ...(handles.after > handles.before + handlesKept ? [`${handles.after} handles are open`] : []),
    ...(listeners.after > listeners.before ? [`${listeners.after} listeners are left`] : []),
    ...errors.map((line) => `log: ${line.slice(0, 500)}`),
  ];
}

function printSample({
  seconds,
  requests,
  rss,
  heapUsed,
  heapTotal,
  external,
  delayP99Ms,
}: Sample): void {
  const mb = (bytes: number): string => (bytes / 1e6).toFixed(1);
  print(
    `${seconds.toFixed(0)} s, ${requests} requests: ${mb(rss)} MB resident, ${mb(heapUsed)} of ${mb(heapTotal)} MB heap, ${mb(external)} MB outside, p99 ${delayP99Ms.toFixed(1)} ms`,
  );
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
