/**
 * HAProxy in TCP mode in front of a replicated database: a connection stays with one server for its
 * session. As with Patroni, a health check over HTTP decides which server is the primary. Here the
 * rig answers for the servers.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { freePort } from "../../../src/db/embedded/address.ts";
import type { PostgresServer } from "../../support/replicated.ts";

/** See {@link startHaproxy}. */
export interface Haproxy {
  /** The database through the proxy. */
  readonly url: string;
  /**
   * Names the server that may be the primary from now on: what the lock of Patroni says. A server
   * that comes back then is not one, whatever it takes itself for.
   */
  lead(server: PostgresServer): void;
  close(): Promise<void>;
}

/** Options of {@link startHaproxy}. */
interface HaproxyOptions {
  /** For its configuration. */
  readonly folder: string;
  /** The primary first. */
  readonly servers: readonly PostgresServer[];
}

/** Maximum time of its start on a busy machine. */
const startMs = 60_000;

/** Interval of its health checks. Two that fail end a server's sessions. */
const checkMs = 500;

/** Maximum time of a health check on a busy machine. A new primary is reported at once. */
const checkTimeoutMs = 10_000;

/** Message for a machine without HAProxy. */
export const haproxyMissing =
  "HAProxy is not installed: install it, on Debian with `apt-get install haproxy`.";

/**
 * Returns the program; undefined without one. Debian installs it into a folder that only root
 * searches.
 */
export function findHaproxy(): string | undefined {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin", "/usr/local/sbin"];
  return folders.map((folder) => join(folder, "haproxy")).find(existsSync);
}

/**
 * Starts one. Resolves when it lets sessions through. Close it. @throws if HAProxy is not installed
 */
export async function startHaproxy(options: HaproxyOptions): Promise<Haproxy> {
  const { folder, servers } = options;
  const program = findHaproxy();
  if (program === undefined) throw new Error(haproxyMissing);
  let [leader] = servers;
  const checks = await Promise.all(servers.map((server) => startCheck(server, () => leader)));
  const port = await freePort();
  const file = join(folder, "haproxy.cfg");
  writeFileSync(file, configuration(port, servers, checks));
  const child = spawn(program, ["-db", "-f", file], { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (piece: Buffer) => (said += piece.toString()));
  }
  const url = new URL(servers[0]?.url ?? "");
  url.port = String(port);
  const close = async (): Promise<void> => {
    await kill(child);
    for (const check of checks) check.close();
  };
  for (const end = performance.now() + startMs; !(await answers(url.href)); await sleep(20)) {
    if (child.exitCode === null && performance.now() < end) continue;
    await close();
    throw new Error(`haproxy did not start: ${said}`);
  }
  return { url: url.href, lead: (server) => void (leader = server), close };
}

function configuration(
  port: number,
  servers: readonly PostgresServer[],
  checks: readonly Server[],
): string {
  const lines = servers.map((server, index) => {
    const check = checks[index]?.address() as AddressInfo | undefined;
    return `  server postgres${index} 127.0.0.1:${server.port} check port ${check?.port}`;
  });
  return `defaults
  mode tcp
  timeout connect 2s
  timeout client 30m
  timeout server 30m
  timeout check ${checkTimeoutMs}ms

listen postgres
  bind 127.0.0.1:${port}
  option httpchk
  http-check send meth GET uri /primary
  http-check expect status 200
  default-server inter ${checkMs}ms fall 2 rise 1 on-marked-down shutdown-sessions
${lines.join("\n")}
`;
}

/**
 * Answers 200 if this server leads and takes writes, else 503. A leader that is frozen gives no
 * answer.
 */
async function startCheck(
  server: PostgresServer,
  leader: () => PostgresServer | undefined,
): Promise<Server> {
  const check = createServer((_request, response) => {
    void isPrimary(server, leader).then((isRight) => {
      response.statusCode = isRight ? 200 : 503;
      response.end();
    });
  });
  check.listen(0, "127.0.0.1");
  await once(check, "listening");
  return check;
}

async function isPrimary(
  server: PostgresServer,
  leader: () => PostgresServer | undefined,
): Promise<boolean> {
  if (leader() !== server) return false;
  try {
    return (await server.query("select 1 where not pg_is_in_recovery()")).length > 0;
  } catch {
    return false;
  }
}

async function answers(url: string): Promise<boolean> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 1_000 });
  client.on("error", () => {});
  try {
    await client.connect();
    await client.query("select 1");
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => {});
  }
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "close");
  child.kill("SIGKILL");
  await ended;
}
