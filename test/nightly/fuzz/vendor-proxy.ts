/** A proxy before a vendor that hurts replies: any fault, at any place of the reply's bytes. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";

/** Fault of a reply; `refuse`: the vendor accepts no connection. */
export type FaultKind =
  | "none"
  | "refuse"
  | "delay"
  | "cut"
  | "reset"
  | "stall"
  | "duplicate"
  | "corrupt"
  | "drip"
  | "compress"
  | "compress-broken";

/**
 * Where: while the request is sent; before the head of the reply, in it, behind it, in the middle
 * of the content, before the last bytes, behind them.
 */
export type Phase = "upload" | "connect" | "head" | "first" | "mid" | "end" | "after";

/** Requests of a call that are hit: the one with its mark, or those about the job that it began. */
export type Step = "submit" | "poll" | "cancel" | "file";

/** The fault of one call, found by the mark `#number#` in its request. */
export interface Plan {
  readonly kind: FaultKind;
  readonly phase: Phase;
  readonly step: Step;
  /** Number of requests that it hits; later ones pass. */
  readonly times: number;
  /** Number of requests with this mark so far. */
  asked: number;
  /** Number of requests of its step so far. */
  met: number;
}

/** Proxies for several vendors. */
export interface VendorProxies {
  /** Address of a vendor; used as `addressOf` of a world. */
  readonly addressOf: (vendor: string, origin: string) => string;
  readonly plans: Map<number, Plan>;
  /** Refuses all connections from now on. */
  refuse(): Promise<void>;
  close(): Promise<void>;
}

/** Length of a delay: well below every timeout. */
const delayMs = 100;

/** Opens a proxy for each name. Vendors of other names are reached without one. */
export async function openVendorProxies(names: readonly string[]): Promise<VendorProxies> {
  const plans = new Map<number, Plan>();
  const targets = new Map<string, URL>();
  const servers = new Map<string, Server>();
  const jobs = new Map<string, Plan>();
  const sockets = new Set<Socket>();
  const keep = (socket: Socket): void => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
  };
  for (const name of names) {
    const server = createServer((client) => {
      keep(client);
      const target = (): URL => targets.get(name) as URL;
      void serve(client, target, { plans, jobs, keep }).catch(() => client.destroy());
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    servers.set(name, server);
  }
  const refuse = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy();
    for (const server of servers.values()) {
      if (!server.listening) continue;
      server.close();
      await once(server, "close");
    }
  };
  return {
    plans,
    refuse,
    close: refuse,
    addressOf(name, origin) {
      const server = servers.get(name);
      if (server === undefined) return origin;
      const url = new URL(origin);
      targets.set(name, new URL(origin));
      url.port = String((server.address() as AddressInfo).port);
      return url.href.replace(/\/$/, "");
    },
  };
}

interface Serving {
  readonly plans: ReadonlyMap<number, Plan>;
  /** By the ids in the replies to their submits. */
  readonly jobs: Map<string, Plan>;
  readonly keep: (socket: Socket) => void;
}

/** One request of a connection: the reply ends it. */
async function serve(client: Socket, target: () => URL, serving: Serving): Promise<void> {
  const { plans, jobs, keep } = serving;
  let marked: Plan | undefined;
  const upload = await readRequest(client, (bytes) => {
    if (marked !== undefined) return false;
    marked = plans.get(Number(/#(\d+)#/.exec(bytes.toString("latin1"))?.[1]));
    if (marked === undefined) return false;
    marked.asked++;
    return marked.phase === "upload" && isHit(marked, "submit");
  });
  if (upload?.isStopped === true && !(await passUpload(client, marked as Plan))) return;
  const request =
    upload?.isStopped === true ? await readRequest(client, undefined, upload.bytes) : upload;
  if (request === undefined) return client.destroy() as unknown as void;
  const plan = marked ?? planOfJob(request.bytes, jobs);
  const step = marked === undefined ? stepOf(request.bytes) : "submit";
  const isNow = plan !== undefined && plan.phase !== "upload" && isHit(plan, step);
  const { kind, phase } = isNow ? plan : ({ kind: "none", phase: "after" } as const);
  if (phase === "connect" && kind !== "none") {
    if (kind === "reset") client.resetAndDestroy();
    else if (kind === "cut") client.end();
    if (kind === "reset" || kind === "cut" || kind === "stall") return;
    await sleep(delayMs);
  }
  const reply = await ask(target(), request.bytes, keep);
  if (marked !== undefined) noteJob(reply, marked, jobs);
  await deliver(client, reply, { kind, phase });
}

function isHit(plan: Plan, step: Step): boolean {
  return plan.step === step && plan.met++ < plan.times;
}

/** Classifies a request about a job. */
function stepOf(request: Buffer): Step {
  const [line = ""] = request.toString("latin1", 0, 2_000).split("\r\n", 1);
  if (line.includes("/files/")) return "file";
  return line.startsWith("GET ") ? "poll" : "cancel";
}

/** The plan of the job that a path names. */
function planOfJob(request: Buffer, jobs: ReadonlyMap<string, Plan>): Plan | undefined {
  const [, path = ""] = request.toString("latin1", 0, 2_000).split(" ", 2);
  for (const [word] of path.matchAll(/[\w-]+/g)) {
    const plan = jobs.get(word);
    if (plan !== undefined) return plan;
  }
  return undefined;
}

/** Learns the id of the job that a submit has begun. */
function noteJob(reply: Buffer, plan: Plan, jobs: Map<string, Plan>): void {
  for (const [, id] of reply.toString("latin1").matchAll(jobIds)) jobs.set(id as string, plan);
}

const jobIds = /"(?:id|task_id|request_id|name)" *: *"(?:[^"]*\/)?([\w-]+)"/g;

/** Hurts a request that has begun to arrive. @returns whether the rest may be read */
async function passUpload(client: Socket, { kind }: Plan): Promise<boolean> {
  if (kind === "delay") await sleep(delayMs);
  if (kind === "reset") client.resetAndDestroy();
  if (kind === "cut") client.end();
  return kind !== "reset" && kind !== "cut" && kind !== "stall";
}

interface ReadRequest {
  readonly bytes: Buffer;
  /** Whether `shouldStop` returned true: more may follow. */
  readonly isStopped: boolean;
}

/**
 * Reads one request with a known length or chunks; undefined if none came. @param bytes what has
 * come before
 */
async function readRequest(
  client: Socket,
  shouldStop: (bytes: Buffer) => boolean = () => false,
  bytes: Buffer = Buffer.alloc(0),
): Promise<ReadRequest | undefined> {
  if (isWholeRequest(bytes)) return { bytes, isStopped: false };
  for await (const piece of client.iterator({ destroyOnReturn: false })) {
    bytes = Buffer.concat([bytes, piece as Buffer]);
    if (shouldStop(bytes)) return { bytes, isStopped: true };
    if (isWholeRequest(bytes)) return { bytes, isStopped: false };
  }
  return undefined;
}

function isWholeRequest(bytes: Buffer): boolean {
  const head = bytes.indexOf("\r\n\r\n");
  if (head < 0) return false;
  const text = bytes.toString("latin1", 0, head + 2).toLowerCase();
  const length = /\r\ncontent-length: *(\d+)/.exec(text)?.[1];
  return text.includes("\r\ntransfer-encoding: chunked")
    ? bytes.subarray(-5).toString() === "0\r\n\r\n"
    : bytes.length >= head + 4 + Number(length ?? 0);
}

/** The vendor's whole reply as bytes. */
async function ask(
  { hostname, port }: URL,
  request: Buffer,
  keep: (socket: Socket) => void,
): Promise<Buffer> {
  const socket = connect(Number(port), hostname);
  keep(socket);
  const end = request.indexOf("\r\n\r\n");
  const head = request.toString("latin1", 0, end).replace(/\r\nconnection:[^\r]*/i, "");
  socket.write(`${head}\r\nconnection: close\r\n\r\n`, "latin1");
  socket.write(request.subarray(end + 4));
  return Buffer.concat(await Array.fromAsync(socket as AsyncIterable<Buffer>));
}

/** Returns the position of the phase in the reply. */
function placeOf(phase: Phase, reply: Buffer): number {
  const body = reply.indexOf("\r\n\r\n") + 4;
  switch (phase) {
    case "upload":
    case "connect":
      return 0;
    case "head":
      return 12;
    case "first":
      return body;
    case "mid":
      return body + Math.floor((reply.length - body) * 0.6);
    case "end":
      return reply.length - 3;
    case "after":
    default:
      return reply.length;
  }
}

async function deliver(
  client: Socket,
  reply: Buffer,
  { kind, phase }: Pick<Plan, "kind" | "phase">,
): Promise<void> {
  const at = placeOf(phase, reply);
  const [before, after] = [reply.subarray(0, at), reply.subarray(at)];
  switch (kind) {
    case "cut":
      return void client.end(before);
    case "reset":
      await write(client, before);
      // A reset discards bytes in flight, so the gateway may read them first.
      await sleep(delayMs / 4);
      return void client.resetAndDestroy();
    case "stall":
      return void client.write(before);
    case "delay":
      await write(client, before);
      await sleep(delayMs);
      return void client.end(after);
    case "duplicate":
      return void client.end(
        Buffer.concat([before, reply.subarray(Math.max(0, at - 60), at), after]),
      );
    case "corrupt":
      return void client.end(Buffer.concat([before, Buffer.alloc(12, 0xff), after.subarray(12)]));
    case "drip":
      await write(client, before);
      for (let piece = 0; piece < Math.min(after.length, 200); piece++) {
        await write(client, after.subarray(piece, piece + 1));
        await sleep(1);
      }
      return void client.end(after.subarray(200));
    case "compress":
    case "compress-broken":
      return void client.end(compressed(reply, kind === "compress-broken"));
    case "refuse":
    case "none":
      return void client.end(reply);
  }
}

function write(client: Socket, bytes: Buffer): Promise<void> {
  return new Promise((resolve) => {
    if (bytes.length === 0 || client.destroyed) resolve();
    else client.write(bytes, () => resolve());
  });
}

/** The same reply with a compressed body, which may be broken in its first half. */
function compressed(reply: Buffer, isBroken: boolean): Buffer {
  const end = reply.indexOf("\r\n\r\n");
  const head = reply.toString("latin1", 0, end);
  const isChunked = /transfer-encoding: chunked/i.test(head);
  const raw = reply.subarray(end + 4);
  const body = gzipSync(isChunked ? unchunk(raw) : raw);
  if (isBroken) body.fill(0xaa, 4, Math.max(12, body.length >> 1));
  const lines = head
    .split("\r\n")
    .filter((line) => !/^(?:transfer-encoding|content-length|content-encoding):/i.test(line));
  const more = ["content-encoding: gzip", `content-length: ${body.length}`];
  return Buffer.concat([
    Buffer.from(`${[...lines, ...more].join("\r\n")}\r\n\r\n`, "latin1"),
    body,
  ]);
}

function unchunk(bytes: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf("\r\n", at);
    const size = Number.parseInt(bytes.toString("latin1", at, end), 16);
    if (!(size > 0)) break;
    parts.push(bytes.subarray(end + 2, end + 2 + size));
    at = end + 4 + size;
  }
  return Buffer.concat(parts);
}
