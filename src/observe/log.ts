/** The log: one JSON line per event, with secrets removed. */
import { type Logger, pino } from "pino";
import { isoTime } from "../core/iso-time.ts";
import { LogOutput } from "./log-output.ts";

/** The destination of log lines. */
export interface LogSink {
  write(line: string): void;
}

export interface LogOptions {
  /** Secrets to remove: vendor credentials, the operator token, database passwords. */
  readonly secrets: readonly string[];
  /** Receives every line at once. {@link output} by default. */
  readonly sink?: LogSink;
  /** Receives lines in writes of up to 64 KiB. Standard output by default. */
  readonly output?: LogOutput;
  /** Default `info`. */
  readonly level?: string;
  /** The worker number, added to each line. None by default. */
  readonly worker?: number;
}

const platformKey = /uas_[A-Za-z0-9]{32}/g;
const webhookSecret = /whsec_[A-Za-z0-9+/]{43}=/g;

/** Shorter secrets would remove ordinary text too. */
const secretCharsMin = 6;

/**
 * Creates the log. Every line passes a scrubber: API keys and webhook secrets are recognised by
 * their form, the other secrets by their text. Redaction by path would miss secrets inside error
 * messages.
 */
export function createLog({ secrets, sink, output, level = "info", worker }: LogOptions): {
  log: Logger;
  /** Resolves when all lines are written, or after a second. */
  flush(): Promise<void>;
  /** Removes more secrets from all lines that are written from now on. */
  hide(this: void, more: readonly string[]): void;
} {
  const hidden = new Set(secrets);
  let scrubber = createScrubber(secrets);
  const scrub = (text: string): string => scrubber(text);
  const buffered =
    sink === undefined
      ? createBuffer(output ?? new LogOutput(), scrub)
      : { ...noFlush, write: (line: string) => sink.write(scrub(line)) };
  const log = pino(
    {
      level,
      base: worker === undefined ? null : { worker },
      timestamp,
      messageKey: "msg",
      serializers,
    },
    { write: (line: string) => buffered.write(line) },
  );
  return {
    log,
    flush: () => buffered.flush(),
    hide(more) {
      for (const secret of more) hidden.add(secret);
      scrubber = createScrubber([...hidden]);
    },
  };
}

/**
 * Serializes errors under both names. pino itself recognises `err` only and writes others as `{}`.
 */
const serializers = { err: pino.stdSerializers.err, error: pino.stdSerializers.err };

/** ISO 8601 with milliseconds. */
function timestamp(): string {
  return `,"time":"${isoTime(Date.now())}"`;
}

const noFlush = { flush: () => Promise.resolve() };

/** Creates a function that removes every secret from a text. */
export function createScrubber(secrets: readonly string[]): (text: string) => string {
  const known = [...new Set(secrets)].filter((secret) => secret.length >= secretCharsMin);
  // Longest first, since one secret may be the beginning of another.
  const forms = [...new Set(known.flatMap(formsOf))].toSorted((a, b) => b.length - a.length);
  return (text) => {
    let clean = text;
    for (const form of forms) if (clean.includes(form)) clean = clean.replaceAll(form, "[hidden]");
    if (clean.includes("whsec_")) clean = clean.replace(webhookSecret, "whsec_[hidden]");
    return clean.includes("uas_") ? clean.replace(platformKey, "uas_[hidden]") : clean;
  };
}

/** The spellings of a secret in a line: plain, in JSON, in JSON within JSON, and in a URL. */
function formsOf(secret: string): string[] {
  const escaped = escape(secret);
  return [secret, escaped, escape(escaped), escape(encodeURIComponent(secret.toWellFormed()))];
}

/** Escapes a text as between the quotes of JSON. */
function escape(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** Maximum time that lines are buffered, so that one system call writes many. */
const flushMs = 100;

/** Largest buffer, in characters. */
const bufferedMax = 64 * 1024;

/**
 * @param scrub removes secrets: from all lines of a write at once, as a search per line and secret
 * would cost more
 */
function createBuffer(
  output: LogOutput,
  scrub: (lines: string) => string,
): LogSink & { flush(): Promise<void> } {
  let waiting = "";
  let timer: NodeJS.Timeout | undefined;
  const pass = (): void => {
    clearTimeout(timer);
    timer = undefined;
    if (waiting === "") return;
    const lines = waiting;
    waiting = "";
    output.write(scrub(lines));
  };
  return {
    write(line) {
      waiting += line;
      if (waiting.length >= bufferedMax) pass();
      else timer ??= setTimeout(pass, flushMs).unref();
    },
    flush() {
      pass();
      return output.flush();
    },
  };
}
