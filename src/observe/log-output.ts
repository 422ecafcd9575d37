/**
 * Writes the lines of the log. A slow, full or closed output delays no call and ends no process:
 * lines are lost instead.
 */
import { write, writeSync } from "node:fs";
import { isatty } from "node:tty";
import { setTimeout as sleep } from "node:timers/promises";
import { failureMessage } from "../core/error-words.ts";
import { terminalLines } from "./terminal-lines.ts";

/** Options of a {@link LogOutput}. */
export interface LogOutputOptions {
  /** The file descriptor. Standard output by default. */
  readonly fd?: number;
  /**
   * Maximum number of bytes that wait for a slow or full output; further lines are lost. Default 8
   * MiB, seconds of a busy gateway.
   */
  readonly waitingMax?: number;
  /** Warns the operator that the log cannot be written. On standard error by default. */
  readonly warn?: (text: string) => void;
  /** Whether a person reads at a terminal, who gets short lines instead of JSON. */
  readonly isTerminal?: boolean;
}

/** Pause before a failed write is retried. */
const retryMs = 20;

/** Maximum time that {@link LogOutput.flush} waits for a slow output. */
const flushMsMax = 1_000;

/** Writes to a file descriptor, one write at a time, in the order of the calls. */
export class LogOutput {
  readonly #fd: number;
  readonly #waitingMax: number;
  readonly #warn: (text: string) => void;
  readonly #isTerminal: boolean;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  /** The unwritten rest of the write in progress. */
  #current: Buffer | undefined;
  #retry: NodeJS.Timeout | undefined;
  #lost = 0;
  #isFailing = false;
  /** The reader has closed the output for good. */
  #isClosed = false;

  constructor(options: LogOutputOptions = {}) {
    const { fd = 1, waitingMax = 8 << 20, warn = warnPeople, isTerminal = isatty(fd) } = options;
    this.#fd = fd;
    this.#isTerminal = isTerminal;
    this.#waitingMax = waitingMax;
    this.#warn = warn;
  }

  /** Writes whole lines as soon as the output accepts them. Never throws. */
  write(lines: string): void {
    const bytes = Buffer.from(this.#isTerminal ? terminalLines(lines) : lines);
    if (this.#isClosed || this.#waitingBytes + bytes.length > this.#waitingMax) {
      this.#lost += countLines(bytes);
      return;
    }
    this.#append(bytes);
    if (this.#current === undefined) this.#next();
  }

  /**
   * Resolves when everything is written, or after a second. Where a pipe's reader has stopped, the
   * process still waits for it at its exit, or until it is killed.
   */
  async flush(): Promise<void> {
    const endMs = performance.now() + flushMsMax;
    while (this.#current !== undefined && performance.now() < endMs) await sleep(5);
    clearTimeout(this.#retry);
  }

  #append(bytes: Buffer): void {
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
  }

  #next(): void {
    if (this.#waiting.length === 0) return;
    this.#current = this.#waiting.length === 1 ? this.#waiting[0] : Buffer.concat(this.#waiting);
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#write();
  }

  #write(): void {
    const bytes = this.#current;
    if (bytes === undefined) return;
    // Not writeSync: if the reader of a pipe has stopped, that would block, and all calls with it.
    write(this.#fd, bytes, (error, written) => {
      if (error) return this.#onFailure(error);
      if (written < bytes.length) {
        this.#current = bytes.subarray(written);
        return this.#write();
      }
      this.#current = undefined;
      this.#isFailing = false;
      if (this.#lost > 0) this.#tellLost();
      this.#next();
    });
  }

  #onFailure(error: NodeJS.ErrnoException): void {
    if (error.code === "EPIPE") {
      this.#isClosed = true;
      this.#current = undefined;
      this.#waiting = [];
    } else {
      this.#retry = setTimeout(() => this.#write(), retryMs).unref();
    }
    // A reader that is slow for a moment is not a failure.
    if (error.code === "EAGAIN" || this.#isFailing) return;
    this.#isFailing = true;
    const consequence = this.#isClosed
      ? "the log ends here"
      : `up to ${Math.ceil(this.#waitingMax / 1024)} KiB of lines are buffered until the output accepts them; further lines are lost`;
    this.#warn(
      `the log cannot be written (${failureMessage(error)}): ${consequence}; calls are still served\n`,
    );
  }

  #tellLost(): void {
    const line = {
      level: 40,
      time: new Date().toISOString(),
      lines: this.#lost,
      msg: "log lines were lost here, because the output did not accept them",
    };
    this.#lost = 0;
    // The waiting lines are older than the lost lines.
    this.#append(Buffer.from(`${JSON.stringify(line)}\n`));
  }
}

function countLines(bytes: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(10); at !== -1; at = bytes.indexOf(10, at + 1)) count++;
  return count;
}

/** Writes to standard error, if it has a reader. */
function warnPeople(text: string): void {
  try {
    writeSync(2, text);
  } catch {
    // There is no other output for the warning.
  }
}
