/** Builds copies of the contract with changes in their text. */
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const root = join(import.meta.dirname, "../../..");

/** A replacement in a file below `proto/uas`. */
export interface Edit {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

/**
 * Builds the contract's descriptor after some edits. @throws Error if an edit finds nothing to
 * replace
 */
export function buildContract(edits: readonly Edit[] = []): Buffer {
  const folder = mkdtempSync(join(tmpdir(), "uas-contract-"));
  try {
    cpSync(join(root, "proto/uas"), join(folder, "proto/uas"), { recursive: true });
    cpSync(join(root, "buf.yaml"), join(folder, "buf.yaml"));
    for (const { file, from, to } of edits) {
      const path = join(folder, "proto/uas", file);
      const text = readFileSync(path, "utf8");
      if (!text.includes(from)) throw new Error(`${file} has no ${from}`);
      writeFileSync(path, text.replace(from, to));
    }
    const buf = join(root, "node_modules/.bin/buf");
    return execFileSync(buf, ["build", "-o", "-"], { cwd: folder, maxBuffer: 2 ** 26 });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
