/** Loaded into every process of the bench before its script: answers what the bench asks over IPC. */

/** What one process can be asked beside its CPU time and memory. */
export type Handlers = Readonly<Record<string, (argument: never) => unknown>>;

const handlersKey = Symbol.for("uas.bench.handlers");

/** Adds handlers and lives as long as the bench; called once by a script of the bench. */
export function answerWith(handlers: Handlers): void {
  Object.assign(globalThis, { [handlersKey]: handlers });
  process.channel?.ref();
  process.once("disconnect", () => process.exit());
}

/** What a process has used so far, all its threads included. */
export interface ProcessFigures {
  /** Microseconds of user and system time. */
  readonly cpuMicros: number;
  /** Context switches, voluntary and involuntary. */
  readonly switches: number;
  /** Bytes of resident memory. */
  readonly rssBytes: number;
}

function figures(): ProcessFigures {
  const usage = process.resourceUsage();
  return {
    cpuMicros: usage.userCPUTime + usage.systemCPUTime,
    switches: usage.voluntaryContextSwitches + usage.involuntaryContextSwitches,
    rssBytes: process.memoryUsage.rss(),
  };
}

interface Question {
  readonly id: number;
  readonly name: string;
  readonly argument: never;
}

async function onQuestion({ id, name, argument }: Question): Promise<void> {
  try {
    const own = (globalThis as { [handlersKey]?: Handlers })[handlersKey];
    const handler = name === "figures" ? figures : own?.[name];
    if (handler === undefined) throw new Error(`nobody answers ${name}`);
    process.send?.({ id, value: await handler(argument) });
  } catch (error) {
    process.send?.({ id, error: error instanceof Error ? error.message : String(error) });
  }
}

// Workers of the gateway load this file too; their channel leads to the gateway, not to the bench.
if (process.send && process.env["UAS_BENCH_PID"] === String(process.ppid)) {
  process.on("message", (question) => void onQuestion(question as Question));
  // Of the gateway: the bench's questions alone must not keep it alive.
  process.channel?.unref();
}
