/**
 * The log's output may be slow, full or closed: the process that writes to it neither waits nor
 * ends.
 */
import { execFileSync } from "node:child_process";
import { closeSync, constants, existsSync, mkdtempSync, openSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { LogOutput } from "../../../src/observe/log-output.ts";

/** A pipe without readers that wait. Closed when the test ends, unless it was closed before. */
function openPipe() {
  const folder = mkdtempSync(join(tmpdir(), "uas-pipe-"));
  const path = join(folder, "pipe");
  execFileSync("mkfifo", [path]);
  const open = new Set<number>();
  const close = (fd: number): void => {
    if (open.delete(fd)) closeSync(fd);
  };
  const openOne = (flag: number): number => {
    const fd = openSync(path, flag | constants.O_NONBLOCK);
    open.add(fd);
    return fd;
  };
  const [reader, writer] = [openOne(constants.O_RDONLY), openOne(constants.O_WRONLY)];
  onTestFinished(() => {
    for (const fd of [...open]) close(fd);
    rmSync(folder, { recursive: true });
  });
  const bytes = Buffer.alloc(1 << 16);
  return {
    writer,
    /** Returns its content. */
    read: (): string => {
      try {
        return bytes.toString("utf8", 0, readSync(reader, bytes));
      } catch (error) {
        expect(error).toMatchObject({ code: "EAGAIN" });
        return "";
      }
    },
    closeReader: () => close(reader),
  };
}

/** Reads until `isEnough`. */
async function readUntil(read: () => string, isEnough: (text: string) => boolean): Promise<string> {
  let text = "";
  await expect.poll(() => isEnough((text += read())), { interval: 1 }).toBe(true);
  return text;
}

const line = (number: number): string => `{"line":${number}}${" ".repeat(1_000)}\n`;

describe("the output of the log", () => {
  it("keeps the lines for a reader that has stopped, and writes them in order when it reads again", async () => {
    const { writer, read } = openPipe();
    const output = new LogOutput({ fd: writer });
    const lines = Array.from({ length: 300 }, (_, number) => line(number));
    for (const each of lines) output.write(each);
    const all = lines.join("");
    expect(await readUntil(read, ({ length }) => length >= all.length)).toBe(all);
    await output.flush();
  });

  it("logs how many lines were lost if more arrived than can wait", async () => {
    const { writer, read } = openPipe();
    const output = new LogOutput({ fd: writer, waitingMax: 100_000 });
    for (let number = 0; number < 500; number++) output.write(line(number));
    const text = await readUntil(read, (all) => all.includes("were lost"));
    await output.flush();
    const written = text.trimEnd().split("\n");
    const last = JSON.parse(written.at(-1) ?? "") as { readonly lines: number };
    expect(last).toMatchObject({ level: 40, lines: 500 - (written.length - 1) });
    expect(JSON.parse(written.at(-2) ?? "")).toEqual({ line: written.length - 2 });
    output.write("after\n");
    expect(await readUntil(read, (all) => all !== "")).toBe("after\n");
    await output.flush();
  });

  it("says once on standard error that its reader is gone, and goes on", async () => {
    const { writer, closeReader } = openPipe();
    closeReader();
    const said: string[] = [];
    const output = new LogOutput({ fd: writer, warn: (text) => void said.push(text) });
    output.write("nobody reads this\n");
    await output.flush();
    output.write("nor this\n");
    await output.flush();
    expect(said).toEqual([expect.stringContaining("EPIPE")]);
  });

  it.skipIf(!existsSync("/dev/full"))(
    "waits for room on a full disk, and says so once on standard error",
    async () => {
      const full = openSync("/dev/full", "w");
      onTestFinished(() => closeSync(full));
      const said: string[] = [];
      const output = new LogOutput({ fd: full, warn: (text) => void said.push(text) });
      output.write("no room\n");
      output.write("for these\n");
      // It stops after a second: a process that ends cannot wait for a disk.
      await output.flush();
      expect(said).toEqual([expect.stringContaining("ENOSPC")]);
    },
  );
});
