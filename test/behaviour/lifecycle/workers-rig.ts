/** Several workers under one supervisor, as their log and their metrics show them. */
import { send } from "../../support/raw-http.ts";
import { operatorToken, type Process, until } from "./process.ts";
import type { ServedProcess } from "./served.ts";

/** A line of the log. */
export type LogLine = Readonly<Record<string, unknown>>;

/** Every line of the log so far; the welcome is none. @throws if a line is not whole */
export function logLines(process: Process): LogLine[] {
  const whole = process.out.slice(0, process.out.lastIndexOf("\n") + 1);
  return whole
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as LogLine);
}

/** The process ids of each worker in the order of their starts, by number. */
export function pidsOf(process: Process): ReadonlyMap<number, readonly number[]> {
  const pids = new Map<number, number[]>();
  for (const { msg, worker, pid } of logLines(process)) {
    if (msg !== "a worker serves") continue;
    pids.getOrInsertComputed(Number(worker), () => []).push(Number(pid));
  }
  return pids;
}

/** Kills the process that is a worker at the moment. @returns its id */
export function killWorker(supervisor: Process, worker: number): number {
  const pid = pidsOf(supervisor).get(worker)?.at(-1);
  // Process 0 would be this one and all beside it.
  if (pid === undefined || !(pid > 1)) throw new Error(`worker ${worker} has not served`);
  process.kill(pid, "SIGKILL");
  return pid;
}

/** Whether a process lives. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** The line that a worker has written of a request, once it is there. */
export async function lineOf(process: Process, requestId: string): Promise<LogLine> {
  return until(`a line of ${requestId}; it says ${process.out}`, () =>
    logLines(process).find((line) => line["requestId"] === requestId),
  );
}

let count = 0;

/** A call on a new connection. */
export async function call(
  process: ServedProcess,
  key: string,
  model = "m",
): Promise<{ readonly status: number; readonly requestId: string }> {
  const requestId = `call-${++count}`;
  const headers = {
    authorization: `Bearer ${key}`,
    "content-type": "application/json",
    "x-request-id": requestId,
  };
  const body = JSON.stringify({ model, messages: [{ role: "user", content: "Hi" }] });
  const { status } = await send(`${process.url}/v1/chat/completions`, { headers, body });
  return { status, requestId };
}

/**
 * Calls until all of these workers have answered since. @returns each worker's first status, by
 * number
 */
export async function callAll(
  process: ServedProcess,
  key: string,
  workers: readonly number[],
  model?: string,
): Promise<ReadonlyMap<number, number>> {
  const statuses = new Map<number, number>();
  await until(`workers ${workers.join(", ")} have answered; it says ${process.out}`, async () => {
    const { status, requestId } = await call(process, key, model);
    const { worker } = await lineOf(process, requestId);
    if (!statuses.has(Number(worker))) statuses.set(Number(worker), status);
    return workers.every((each) => statuses.has(each)) ? true : undefined;
  });
  return statuses;
}

/** The metrics of all workers: values by name and labels as they are written. */
export async function readMetrics(process: ServedProcess): Promise<ReadonlyMap<string, number>> {
  const { status, body, headers } = await send(`${process.internalUrl}/metrics`, { method: "GET" });
  if (status !== 200) throw new Error(`/metrics: ${status} ${body.toString()}`);
  if (!headers["content-type"]?.startsWith("text/plain; version=0.0.4")) throw new Error("no text");
  const lines = body.toString().split("\n");
  return new Map(
    lines
      .filter((line) => line !== "" && !line.startsWith("#"))
      .map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.split(" ").at(-1))]),
  );
}

/** Calls an RPC as the operator. */
export async function operate(
  { internalUrl }: ServedProcess,
  method: string,
  request: object,
): Promise<unknown> {
  const headers = { authorization: `Bearer ${operatorToken}`, "content-type": "application/json" };
  const reply = await send(`${internalUrl}/${method}`, { headers, body: JSON.stringify(request) });
  if (reply.status !== 200) throw new Error(`${method}: ${reply.status} ${reply.body.toString()}`);
  return JSON.parse(reply.body.toString());
}
