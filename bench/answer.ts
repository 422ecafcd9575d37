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

/** Microseconds of user and system time, and bytes of resident memory. */
export interface ProcessFigures {
  readonly cpuMicros: number;
  readonly rssBytes: number;
}

function figures(): ProcessFigures {
  const { user, system } = process.cpuUsage();
  return { cpuMicros: user + system, rssBytes: process.memoryUsage.rss() };
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

if (process.send) {
  process.on("message", (question) => void onQuestion(question as Question));
  // Of the gateway: the bench's questions alone must not keep it alive.
  process.channel?.unref();
}
