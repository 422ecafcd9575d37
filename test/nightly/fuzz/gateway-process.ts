/** The process of gateway-child.ts as its parent sees it. */
import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { compiledEnv, startVariables } from "../../support/child.ts";
import { send } from "../../support/raw-http.ts";

/** Options of a gateway. */
export interface GatewayPlan {
  readonly dataDir: string;
  readonly databaseUrl: string;
  /** The text of its `uas.yaml`. */
  readonly yaml: string;
  /** Its environment other than addresses and folders. */
  readonly env: Readonly<Record<string, string>>;
}

/** Options of the process. */
export interface StartOptions {
  /** Flags for Node.js. Default: none. */
  readonly flags?: readonly string[];
  /** Variables of the process that differ from those of `npm start`. Default: none. */
  readonly variables?: Readonly<Record<string, string>>;
  /** A file to which the process first writes its ID. Default: none. */
  readonly pidFile?: string | undefined;
}

/** The state of the process after a collection of its garbage. Memory in bytes. */
export interface Measurement {
  readonly rss: number;
  readonly heapUsed: number;
  /** Memory that V8 has requested for its heap, including garbage and free pages. */
  readonly heapTotal: number;
  readonly external: number;
  /** Open handles and requests by type. */
  readonly handles: Readonly<Record<string, number>>;
  /** Listeners of the process object. */
  readonly listeners: number;
  /** By how much a timer was late in 99 of 100 cases since the last measurement. */
  readonly delayP99Ms: number;
}

/** A request to the process. */
export type ToChild =
  | { readonly kind: "measure" }
  | { readonly kind: "flags"; readonly flags: readonly string[] }
  | { readonly kind: "stop" };

type FromChild =
  | { readonly kind: "ready"; readonly url: string; readonly internalUrl: string }
  | {
      readonly kind: "measured";
      readonly measurement: Measurement;
      readonly warnings: readonly string[];
    };

/** A running gateway, started as `npm start` does. */
export class GatewayProcess {
  readonly pid: number;
  /**
   * Lines of the log at level error and above, warnings of Node.js, and whatever else was printed.
   */
  readonly errors: string[] = [];
  /** The end of the process; undefined while it runs. */
  exit: string | undefined;
  url = "";
  internalUrl = "";
  readonly #child: ChildProcess;
  readonly #ended: Promise<void>;
  #onMessage: (message: FromChild) => void = () => {};

  private constructor(plan: GatewayPlan, { flags = [], variables = {}, pidFile }: StartOptions) {
    const program = join(import.meta.dirname, "gateway-child.ts");
    const command = [process.execPath, "--expose-gc", ...flags, program];
    const [first = "", ...others] =
      pidFile === undefined
        ? command
        : ["sh", "-c", 'echo $$ > "$0" && exec "$@"', pidFile, ...command];
    this.#child = spawn(first, others, {
      env: {
        PATH: process.env["PATH"],
        ...compiledEnv,
        ...startVariables,
        ...variables,
        UAS_FUZZ_PLAN: JSON.stringify(plan),
      },
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    this.pid = this.#child.pid ?? 0;
    this.#ended = new Promise((resolve) => {
      this.#child.once("close", (code, signal) => {
        this.exit = signal ?? `code ${code}`;
        resolve();
      });
    });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      if (stream) createInterface({ input: stream }).on("line", (line) => this.#onLine(line));
    }
    this.#child.on("message", (message: FromChild) => this.#onMessage(message));
  }

  /** Starts one. @throws where it ends before it listens; the error has its output */
  static async start(plan: GatewayPlan, options: StartOptions = {}): Promise<GatewayProcess> {
    const started = new GatewayProcess(plan, options);
    const ready = await started.#next();
    if (ready?.kind !== "ready") {
      throw new Error(`the gateway ended before it listened: ${started.errors.join("\n")}`);
    }
    return Object.assign(started, { url: ready.url, internalUrl: ready.internalUrl });
  }

  /** Collects garbage, then measures. @throws where the process has ended */
  async measure(): Promise<Measurement> {
    this.#send({ kind: "measure" });
    const message = await this.#next();
    if (message?.kind !== "measured") throw new Error(`the gateway has ended: ${this.exit}`);
    this.errors.push(...message.warnings);
    return message.measurement;
  }

  /** Sets flags of V8 from now on. */
  setV8Flags(flags: readonly string[]): void {
    this.#send({ kind: "flags", flags });
  }

  /** Resident memory without a collection, in bytes; 0 if the system does not report it. */
  rss(): number {
    const pages = readProc(this.pid, "statm").split(" ")[1] ?? "0";
    return Number(pages) * 4_096;
  }

  /** Maximum resident memory since the start, in bytes; 0 if the system does not report it. */
  rssMax(): number {
    const kilobytes = /^VmHWM:\s+(\d+) kB$/m.exec(readProc(this.pid, "status"))?.[1] ?? "0";
    return Number(kilobytes) * 1_024;
  }

  /** Open file descriptors; 0 if the system does not report them. */
  descriptors(): number {
    try {
      return readdirSync(`/proc/${this.pid}/fd`).length;
    } catch {
      return 0;
    }
  }

  /** Connections of clients to its listeners; 0 if the system does not report them. */
  connections(): number {
    const ports = [this.url, this.internalUrl].map((url) =>
      Number(new URL(url).port).toString(16).toUpperCase().padStart(4, "0"),
    );
    const rows = readProc(this.pid, "net/tcp").split("\n");
    return rows.filter((row) => {
      // The state of a listener is 0A; who has closed a socket has no file of it left.
      const [, local = "", , state, , , , , , file] = row.trim().split(/\s+/);
      return ports.includes(local.slice(-4)) && state !== "0A" && file !== "0";
    }).length;
  }

  /** The sum of a gauge in `/metrics`. @throws if there is none */
  async gauge(name: string): Promise<number> {
    const { body } = await send(`${this.internalUrl}/metrics`, { method: "GET" });
    const text = body.toString();
    const values = [...text.matchAll(new RegExp(`^${name}(?:\\{.*\\})? (\\S+)$`, "gm"))];
    if (values.length === 0) throw new Error(`there is no gauge ${name}`);
    return values.reduce((sum, [, value]) => sum + Number(value), 0);
  }

  /** Drains it. */
  async stop(): Promise<void> {
    if (this.exit === undefined) this.#send({ kind: "stop" });
    await this.#ended;
  }

  #send(message: ToChild): void {
    if (this.exit === undefined) this.#child.send(message, () => {});
  }

  /** The next message; `undefined` if the process ends first. */
  #next(): Promise<FromChild | undefined> {
    const message = new Promise<FromChild>((resolve) => (this.#onMessage = resolve));
    return Promise.race([message, this.#ended.then(() => undefined)]);
  }

  #onLine(line: string): void {
    if (this.errors.length < 1_000 && !/^\{"level":(?:[1-4]0),/.test(line)) this.errors.push(line);
  }
}

function readProc(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return "";
  }
}
