/** Tells whether another process lives, and where that can be told at all: process ids mean nothing elsewhere. */
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
import { createHash, randomUUID } from "node:crypto";

/**
 * Names the space in which this process's ids are unique: a PID namespace of one boot of one machine. Two containers
 * have two spaces, and so has a machine before and after a restart. Where Linux does not tell, the name is unique to
 * this process: nobody's ids can be judged then.
 */
export const processSpace: string = findProcessSpace();

function findProcessSpace(): string {
  // Other platforms have no namespaces: their containers are Linux on a machine of its own.
  if (process.platform !== "linux") return `${process.platform}-${hostname()}`;
  try {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    // The kernel gives a number again only after all processes of that namespace have ended.
    const namespace = /\d+/.exec(readlinkSync("/proc/self/ns/pid"))?.[0];
    return `${boot}-${namespace}`;
  } catch {
    return randomUUID();
  }
}

/** A short form of {@link processSpace}, for names. */
export const processSpaceId: string = createHash("sha256")
  .update(processSpace)
  .digest("hex")
  .slice(0, 16);

/** Whether a process of this space lives. Another user's process counts; ids are used again for other programs. */
export function isProcessAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
