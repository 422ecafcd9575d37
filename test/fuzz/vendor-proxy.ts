/** A proxy before a vendor that hurts replies: any fault, at any place of the reply's bytes. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";

/** What is done to a reply. */
export type FaultKind =
  | "none"
  | "delay"
  | "cut"
  | "reset"
  | "stall"
  | "duplicate"
  | "corrupt"
  | "drip"
  | "compress"
  | "compress-broken";

/** Where: before the head, in it, behind it, in the middle of the content, before the last bytes, behind them. */
export type Phase = "connect" | "head" | "first" | "mid" | "end" | "after";

/** The fault of one call, found by the mark `#number#` in its request. */
export interface Plan {
  readonly kind: FaultKind;
  readonly phase: Phase;
  /** How many attempts of the call it hits; later ones pass. */
  readonly times: number;
  /** How many requests with this mark have come. */
  asked: number;
}

/** Proxies for several vendors. */
export interface VendorProxies {
  /** Where a vendor is reached; to be used as `addressOf` of a world. */
  readonly addressOf: (vendor: string, origin: string) => string;
  readonly plans: Map<number, Plan>;
  close(): Promise<void>;
}

/** How long a delay is, in milliseconds: well below every timeout. */
const delayMs = 100;

/** Opens a proxy for each name. Vendors of other names are reached without one. */
export async function openVendorProxies(names: readonly string[]): Promise<VendorProxies> {
  const plans = new Map<number, Plan>();
  const targets = new Map<string, URL>();
  const servers = new Map<string, Server>();
  const sockets = new Set<Socket>();
  const keep = (socket: Socket): void => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
  };
  for (const name of names) {
    const server = createServer((client) => {
      keep(client);
      void serve(client, () => targets.get(name) as URL, { plans, keep }).catch(() =>
        client.destroy(),
      );
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    servers.set(name, server);
  }
  return {
    plans,
    addressOf(name, origin) {
      const server = servers.get(name);
      if (server === undefined) return origin;
      const url = new URL(origin);
      targets.set(name, new URL(origin));
      url.port = String((server.address() as AddressInfo).port);
      return url.href.replace(/\/$/, "");
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      for (const server of servers.values()) {
        server.close();
        await once(server, "close");
      }
    },
  };
}

interface Serving {
  readonly plans: ReadonlyMap<number, Plan>;
  readonly keep: (socket: Socket) => void;
}

/** One request of a connection: the reply ends it. */
async function serve(client: Socket, target: () => URL, { plans, keep }: Serving): Promise<void> {
  const request = await readRequest(client);
  if (request === undefined) return client.destroy() as unknown as void;
  const mark = /#(\d+)#/.exec(request.toString("latin1"))?.[1];
  const plan = plans.get(Number(mark));
  const isHit = plan !== undefined && plan.asked++ < plan.times;
  const { kind, phase } = isHit ? plan : ({ kind: "none", phase: "after" } as const);
  if (phase === "connect" && kind !== "none") {
    if (kind === "reset") client.resetAndDestroy();
    else if (kind === "cut") client.end();
    if (kind === "reset" || kind === "cut" || kind === "stall") return;
    await sleep(delayMs);
  }
  const reply = await ask(target(), request, keep);
  await deliver(client, reply, { kind, phase });
}

/** Reads one request with a known length or chunks; `undefined`: none came. */
async function readRequest(client: Socket): Promise<Buffer | undefined> {
  let bytes = Buffer.alloc(0);
  for await (const piece of client.iterator({ destroyOnReturn: false })) {
    bytes = Buffer.concat([bytes, piece as Buffer]);
    const head = bytes.indexOf("\r\n\r\n");
    if (head < 0) continue;
    const text = bytes.toString("latin1", 0, head + 2).toLowerCase();
    const length = /\r\ncontent-length: *(\d+)/.exec(text)?.[1];
    const isChunked = text.includes("\r\ntransfer-encoding: chunked");
    const isWhole = isChunked
      ? bytes.subarray(-5).toString() === "0\r\n\r\n"
      : bytes.length >= head + 4 + Number(length ?? 0);
    if (isWhole) return bytes;
  }
  return undefined;
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

/** Where in the reply the phase is. */
function placeOf(phase: Phase, reply: Buffer): number {
  const body = reply.indexOf("\r\n\r\n") + 4;
  switch (phase) {
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
      // What is under way is lost with a reset: the gateway may read it first.
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
      }
      return void client.end(after.subarray(200));
    case "compress":
    case "compress-broken":
      return void client.end(compressed(reply, kind === "compress-broken"));
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
