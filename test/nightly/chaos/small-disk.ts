/** A small disk for a folder. */
import { spawnSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, rmSync, statfsSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The smallest disk that there is, in bytes: a settlement takes about a sixth. */
export const smallestDiskBytes = 4_096;

/** Puts a small disk in the place of a folder. @throws where this machine does not let us */
export function mountSmallDisk(folder: string, bytes: number): void {
  const options = `size=${bytes},mode=700`;
  const { status, stderr } = spawnSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", folder]);
  if (status !== 0) throw new Error(`mount: ${stderr.toString()}`);
}

/** Takes the disk away, with what is on it. */
export function unmount(folder: string): void {
  spawnSync("umount", ["--lazy", folder]);
}

/** Fills the disk of a folder to its last byte, with a file of its own. */
export function fillDisk(folder: string): void {
  const file = openSync(join(folder, "filler"), "w");
  try {
    for (const page = Buffer.alloc(4_096, 1); ; ) writeSync(file, page);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
  } finally {
    closeSync(file);
  }
}

/** Whether nothing more can be written there. */
export function isFull(folder: string): boolean {
  return statfsSync(folder).bavail === 0;
}

let canMountHere: boolean | undefined;

/** Whether this machine lets us mount disks. */
export function canMount(): boolean {
  return (canMountHere ??= tryMount());
}

function tryMount(): boolean {
  if (process.platform !== "linux") return false;
  const folder = mkdtempSync(join(tmpdir(), "uas-disk-"));
  try {
    mountSmallDisk(folder, smallestDiskBytes);
    unmount(folder);
    return true;
  } catch {
    return false;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
