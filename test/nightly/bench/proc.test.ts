import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { descendants, findPostmaster, postgresCpuMicros, usageOf } from "../../../bench/proc.ts";
import { startEmbedded } from "../../../src/db/embedded/embedded.ts";

describe.runIf(process.platform === "linux")("figures from /proc", () => {
  it("the CPU time of a child process counts for its parent", async () => {
    // 50 ms of CPU, then it waits to be ended.
    const script =
      "const end = process.cpuUsage().user + 50_000; while (process.cpuUsage().user < end); console.log(); process.stdin.resume();";
    const before = usageOf(process.pid);
    const child = spawn(process.execPath, ["-e", script], { stdio: ["pipe", "pipe", "inherit"] });
    const ended = once(child, "close");
    await once(child.stdout, "data");
    const after = usageOf(process.pid);
    expect(descendants(process.pid)).toContain(child.pid);
    expect(after.cpuMicros - before.cpuMicros).toBeGreaterThanOrEqual(50_000);
    expect(after.switches).toBeGreaterThan(before.switches);
    child.stdin.end();
    await ended;
  });

  it("a PostgreSQL on this machine is found by its address, with the CPU time it has used", async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "uas-proc-"));
    const log = { info() {}, warn() {} };
    const embedded = await startEmbedded({ dataDir, log, testing: true });
    try {
      const postmaster = await findPostmaster(embedded.url);
      const mark = readFileSync(join(dataDir, "postgres/postmaster.pid"), "utf8");
      expect(postmaster).toBe(Number(mark.split("\n")[0]));
      expect(postgresCpuMicros(Number(postmaster))).toBeGreaterThan(0);
    } finally {
      await embedded.stop();
      rmSync(dataDir, { recursive: true, force: true });
    }
  });
});
