/** Process: who submits tasks, a vendor whose tasks never end, and a receiver of webhooks, all on 127.0.0.1. */
import { createServer, type IncomingMessage } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo, Server } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Pool } from "undici";
import { newId } from "../src/core/uuid.ts";
import { serverTls } from "../test/support/receiver.ts";
import { answerWith } from "./answer.ts";

/** Where the process listens. */
export interface TaskPorts {
  /** A vendor that speaks like Replicate. */
  readonly vendor: number;
  readonly receiver: number;
}

/** What to submit to whom. */
export interface SubmitLoad {
  /** The gateway's. */
  readonly port: number;
  /** They take turns. */
  readonly keys: readonly string[];
  readonly model: string;
  /** How many submits are under way at once. */
  readonly connections: number;
  /** It ends after so many, or so many milliseconds, whichever is first. */
  readonly count: number;
  readonly durationMs: number;
}

/** What came of it. */
export interface SubmitResult {
  readonly accepted: number;
  /** Those that were told to try again, because the database was away or too slow. */
  readonly refused: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Whose ends to time. */
export interface EndLoad {
  readonly port: number;
  readonly key: string;
  readonly model: string;
  /** How many, one after the other. */
  readonly count: number;
}

/** Who waits for the webhook of an end, by callback id. */
const waiting = new Map<string, () => void>();

/** How long before a submit is tried again, in milliseconds. */
const retryMs = 100;

let receiverPort = 0;

answerWith({
  async listen(): Promise<TaskPorts> {
    receiverPort = await listen(createTlsServer(serverTls, receive));
    return { vendor: await listen(createServer(vendor())), receiver: receiverPort };
  },
  submit,
  /** Milliseconds from each submit to its webhook. */
  async ends({ port, key, model, count }: EndLoad): Promise<readonly number[]> {
    const pool = new Pool(`http://127.0.0.1:${port}`, { connections: 1 });
    const times: number[] = [];
    for (let done = 0; done < count; done++) {
      const callbackId = newId();
      const told = new Promise<void>((resolve) => void waiting.set(callbackId, resolve));
      const begun = performance.now();
      const callbackUrl = `https://127.0.0.1:${receiverPort}/hook`;
      const isAccepted = await ask(pool, key, { ...bodyOf(model), callbackId, callbackUrl });
      if (!isAccepted) throw new Error("a submit was told to try again");
      await told;
      times.push(performance.now() - begun);
    }
    await pool.close();
    return times;
  },
});

async function submit(load: SubmitLoad): Promise<SubmitResult> {
  const { port, keys, model, connections, count, durationMs } = load;
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections });
  const times: number[] = [];
  const begun = performance.now();
  let next = 0;
  let refused = 0;
  const lane = async (): Promise<void> => {
    while (next < count && performance.now() - begun < durationMs) {
      const key = keys[next++ % keys.length] ?? "";
      const askedMs = performance.now();
      const isAccepted = await ask(pool, key, bodyOf(model));
      if (isAccepted) times.push(performance.now() - askedMs);
      else {
        refused++;
        next--;
        await sleep(retryMs);
      }
    }
  };
  await Promise.all(Array.from({ length: connections }, lane));
  const seconds = (performance.now() - begun) / 1_000;
  await pool.close();
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.floor(sorted.length * share)] ?? Infinity;
  return {
    accepted: times.length,
    refused,
    perSecond: times.length / seconds,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
  };
}

function bodyOf(modelKey: string): object {
  return { modelKey, imageParams: { prompt: "a lighthouse in the rain, as seen from the sea" } };
}

/** Whether it was accepted; else it may be tried again. */
async function ask(pool: Pool, key: string, body: object): Promise<boolean> {
  const { statusCode, body: reply } = await pool.request({
    method: "POST",
    path: "/api/ai/tasks",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await reply.text();
  if (statusCode === 200) return true;
  if (statusCode === 503) return false;
  throw new Error(`a submit was answered ${statusCode}: ${text}`);
}

/** Takes each task, and says for ever that it is at work. */
function vendor(): Parameters<typeof createServer>[1] & object {
  let count = 0;
  return (request, response) => {
    request.resume();
    request.on("end", () => {
      const isNew = request.method === "POST";
      const id = isNew ? `p${++count}` : (request.url ?? "").split("/").at(-1);
      response.writeHead(isNew ? 201 : 200, { "content-type": "application/json" });
      response.end(JSON.stringify({ id, status: isNew ? "starting" : "processing", logs: "" }));
    });
  };
}

function receive(request: IncomingMessage, response: { end(): void }): void {
  const pieces: Buffer[] = [];
  request.on("data", (piece: Buffer) => void pieces.push(piece));
  request.on("end", () => {
    response.end();
    const told = JSON.parse(Buffer.concat(pieces).toString()) as Record<string, string>;
    if (told["status"] === "progress") return;
    if (told["status"] !== "completed") throw new Error(`a task came to ${JSON.stringify(told)}`);
    const { callback_id: id = "" } = told;
    waiting.get(id)?.();
    waiting.delete(id);
  });
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}
