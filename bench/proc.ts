/** CPU time and context switches of other processes, from Linux's `/proc`. */
import { readdirSync, readFileSync } from "node:fs";
import { Client } from "pg";

/** Resources that processes have used since their start. */
export interface ProcessUsage {
  /** Microseconds of user and system time. */
  readonly cpuMicros: number;
  /** Context switches, voluntary and involuntary. */
  readonly switches: number;
}

/** Microseconds of a tick in `/proc/<pid>/stat`, on every Linux. */
const tickMicros = 10_000;

/** The children of a process, their children, and so on. */
export function descendants(pid: number): number[] {
  const children = childrenByParent();
  const found: number[] = [];
  const waiting = [pid];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const own = children.get(next) ?? [];
    found.push(...own);
    waiting.push(...own);
  }
  return found;
}

/**
 * Sums up a process and its descendants, such as workers. Threads that have ended are not included.
 */
export function usageOf(pid: number): ProcessUsage {
  const sum = { cpuMicros: 0, switches: 0 };
  for (const { cpuMicros, switches } of [pid, ...descendants(pid)].map(threadUsage)) {
    sum.cpuMicros += cpuMicros;
    sum.switches += switches;
  }
  return sum;
}

/**
 * Finds the parent of all processes of a PostgreSQL server. Resolves with `undefined` if it runs on
 * another machine.
 */
export async function findPostmaster(url: string): Promise<number | undefined> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
    const pid = rows[0]?.pid ?? 0;
    return read(`/proc/${pid}/cmdline`).startsWith("postgres") ? statOf(pid)?.parent : undefined;
  } finally {
    await client.end();
  }
}

/**
 * CPU microseconds of a server so far: backends, background processes, and backends that have
 * ended.
 */
export function postgresCpuMicros(postmaster: number): number {
  const endedMicros = (): number => statOf(postmaster)?.childMicros ?? 0;
  for (;;) {
    const before = endedMicros();
    const living = usageOf(postmaster).cpuMicros;
    // A backend that ends between both readings would be in neither sum.
    if (endedMicros() === before) return before + living;
  }
}

/**
 * `schedstat` counts nanoseconds. `stat` has ticks of 10 ms: too coarse for 40 backends in two
 * seconds.
 */
function threadUsage(pid: number): ProcessUsage {
  const sum = { cpuMicros: 0, switches: 0 };
  for (const thread of list(`/proc/${pid}/task`)) {
    const folder = `/proc/${pid}/task/${thread}`;
    sum.cpuMicros += Number(read(`${folder}/schedstat`).split(" ")[0]) / 1_000;
    for (const [, count] of read(`${folder}/status`).matchAll(
      /voluntary_ctxt_switches:\s+(\d+)/g,
    )) {
      sum.switches += Number(count);
    }
  }
  return sum;
}

function childrenByParent(): Map<number, number[]> {
  const children = new Map<number, number[]>();
  for (const name of list("/proc")) {
    const pid = Number(name);
    const parent = Number.isInteger(pid) ? statOf(pid)?.parent : undefined;
    if (parent !== undefined) children.set(parent, [...(children.get(parent) ?? []), pid]);
  }
  return children;
}

interface Stat {
  readonly parent: number;
  /** Microseconds of user and system time of children that have ended. */
  readonly childMicros: number;
}

function statOf(pid: number): Stat | undefined {
  const text = read(`/proc/${pid}/stat`);
  // The name before it may contain spaces and parentheses.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  if (fields.length < 15) return undefined;
  const ticks = Number(fields[13]) + Number(fields[14]);
  return { parent: Number(fields[1]), childMicros: ticks * tickMicros };
}

/** Processes and threads may end between listing and reading. */
function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

function list(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}
