/** Records a client's requests and answers as they happen: a kill loses no line. */
import { closeSync, existsSync, openSync, readFileSync, writeSync } from "node:fs";

/** One line. `ask` precedes an operation; the answer follows it. */
export type Line =
  | readonly ["hold.ask", id: string, accountId: string]
  | readonly ["hold.told", id: string, isAdmitted: boolean]
  | readonly ["extend.ask", id: string, checkpointNanos: string]
  | readonly ["extend.told", id: string, checkpointNanos: string]
  | readonly ["settle.ask", id: string, costNanos: string]
  | readonly ["settle.told", id: string];

/** Answers about one call. */
export interface Told {
  readonly id: string;
  readonly accountId: string;
  /** Whether its hold was acknowledged; undefined if no answer arrived. */
  isAdmitted?: boolean;
  /** Checkpoints that may be the last one in the database. 0: none is required. */
  checkpoints: bigint[];
  /** Planned cost; undefined if its end was not reached. */
  costNanos?: bigint;
  /** Whether its settlement was said to be durable. */
  isSettled: boolean;
}

/** Writes a history. Each line is in the operating system's hands when this returns. */
export class HistoryWriter {
  readonly #file: number;

  constructor(path: string) {
    this.#file = openSync(path, "a");
  }

  write(...line: Line): void {
    writeSync(this.#file, `${JSON.stringify(line)}\n`);
  }

  close(): void {
    closeSync(this.#file);
  }
}

/** Reads the histories of a round's processes, by call ID. */
export function readHistory(paths: readonly string[]): Map<string, Told> {
  const calls = new Map<string, Told>();
  for (const path of paths.filter((each) => existsSync(each))) {
    for (const text of readFileSync(path, "utf8").split("\n")) {
      // The last one may have been cut by the end of its process.
      if (text.endsWith("]")) apply(calls, JSON.parse(text) as Line);
    }
  }
  return calls;
}

function apply(calls: Map<string, Told>, line: Line): void {
  const [word, id, value] = line;
  if (word === "hold.ask") {
    calls.set(id, { id, accountId: value, checkpoints: [0n], isSettled: false });
    return;
  }
  const call = calls.get(id);
  if (call === undefined) throw new Error(`the history has no beginning of call ${id}`);
  if (word === "hold.told") call.isAdmitted = value;
  else if (word === "extend.ask") call.checkpoints.push(BigInt(value));
  else if (word === "extend.told") forgetBefore(call, BigInt(value));
  else if (word === "settle.ask") call.costNanos = BigInt(value);
  else call.isSettled = true;
}

/** Removes checkpoints that the database acknowledged as replaced. */
function forgetBefore(call: Told, checkpoint: bigint): void {
  const index = call.checkpoints.indexOf(checkpoint);
  if (index > 0) call.checkpoints = call.checkpoints.slice(index);
}
