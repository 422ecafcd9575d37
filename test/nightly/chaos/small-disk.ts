/** A small disk for a folder. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The smallest disk that there is: a settlement takes about a sixth. */
export const smallestDiskBytes = 4_096;

/** Puts a small disk in the place of a folder. @throws if this machine does not let us */
export function mountSmallDisk(folder: string, bytes: number): void {
  const options = `size=${bytes},mode=700`;
  const { status, stderr } = spawnSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", folder]);
  if (status !== 0) throw new Error(`mount: ${stderr.toString()}`);
}

/** Takes the disk away, with what is on it. */
export function unmount(folder: string): void {
  spawnSync("umount", ["--lazy", folder]);
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
