/** Small helpers for durable files. */
import { constants } from "node:fs";
import { open } from "node:fs/promises";

/** Makes the names in a folder durable, after a file was created or renamed. Windows has no such call for folders. */
export async function syncFolder(folder: string): Promise<void> {
  if (process.platform === "win32") return;
  const handle = await open(folder, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Whether a file operation failed because there is no such file. */
export function isMissingFile(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}
