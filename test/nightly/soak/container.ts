/** A limit of memory as a container has it: the kernel ends a process that takes more. */
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** A control group of Linux with a limit of memory. */
export interface Container {
  /** A process belongs to it once its id is written to this file. */
  readonly processes: string;
  /** Removes it, once its processes have ended. */
  remove(): void;
}

/**
 * Creates one; undefined if the system has none, or does not let this user create any. @param bytes
 * of memory
 */
export function createContainer(bytes: number): Container | undefined {
  const [parent, limit] = existsSync("/sys/fs/cgroup/memory/memory.limit_in_bytes")
    ? ["/sys/fs/cgroup/memory", "memory.limit_in_bytes"]
    : ["/sys/fs/cgroup", "memory.max"];
  const folder = join(parent, `uas-soak-${process.pid}`);
  try {
    mkdirSync(folder);
  } catch {
    return undefined;
  }
  const container = {
    processes: join(folder, "cgroup.procs"),
    remove: () => rmdirSync(folder),
  };
  try {
    writeFileSync(join(folder, limit), String(bytes));
    readFileSync(container.processes);
    return container;
  } catch {
    container.remove();
    return undefined;
  }
}
