import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { startEmbedded } from "../../../src/db/embedded/embedded.ts";

const log = { info: () => {}, warn: () => {} };
let parent: string;

beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), "uas-user-"));
  // Without programs on the path there is no `unshare`: as where user namespaces are off.
  vi.stubEnv("PATH", join(parent, "nowhere"));
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(parent, { recursive: true, force: true });
});

/** Whether users that own nothing of it can reach this project. */
function isOpen(folder: string): boolean {
  const above = dirname(folder);
  return (statSync(folder).mode & 0o001) !== 0 && (above === folder || isOpen(above));
}

describe.skipIf(process.getuid?.() !== 0)("as root, without user namespaces", () => {
  test.skipIf(!isOpen(import.meta.dirname))("the data belong to an ordinary user", async () => {
    chmodSync(parent, 0o711);
    const dataDir = join(parent, "data");
    const embedded = await startEmbedded({ dataDir, log, testing: true });
    try {
      const owner = statSync(join(dataDir, "postgres")).uid;
      expect(owner).toBeGreaterThan(0);
      const mark = readFileSync(join(dataDir, "postgres", "postmaster.pid"), "utf8");
      expect(statSync(`/proc/${mark.split("\n")[0]}`).uid).toBe(owner);
    } finally {
      await embedded.stop();
    }
  });

  test("as root, without user namespaces, one paragraph says what to do where no ordinary user gets in", async () => {
    chmodSync(parent, 0o700);
    const starting = startEmbedded({ dataDir: join(parent, "data"), log, testing: true });
    await expect(starting).rejects.toThrow(/does not run as root.*ordinary user.*DATABASE_URL/);
  });
});
