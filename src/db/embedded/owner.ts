/**
 * The owner of a data folder: one process, also across the containers of a machine (R-MON-14). It
 * listens on a socket in the folder. The kernel closes the socket when the process ends for any
 * reason, so an owner is never out of date. A file with a process id could be: the id has no
 * meaning in another container, and is reused after a restart.
 */
import { createHash } from "node:crypto";
import { renameSync, rmSync } from "node:fs";
import { connect, createServer, type Server } from "node:net";
import { hostname } from "node:os";
import { join } from "node:path";
import { socketFolder } from "../../core/data-sockets.ts";

/** A folder that this process owns. */
export interface OwnedFolder {
  /** Ends the ownership of the folder. */
  release(): Promise<void>;
}

/** A folder that another process owns. */
export interface ForeignFolder {
  /** The owner, for people: its process, host and start. */
  readonly owner: string;
}

/** Maximum time an owner may take to identify itself: it may be busy, or paused. */
const answerMs = 2_000;

/** An owner that is paused, or busy. */
const silentOwner = "a process that does not answer";

/**
 * Maximum number of times a process tries to replace the socket of a dead owner. Another process
 * may create it first each time.
 */
const triesMax = 10;

/**
 * Becomes the owner of a folder.
 *
 * @throws if another process owns it: the message names that process, and says what to do
 */
export async function ownFolder(folder: string): Promise<OwnedFolder> {
  const claim = await claimFolder(folder);
  if (!("owner" in claim)) return claim;
  throw new Error(
    `The data folder ${folder} is in use by ${claim.owner}: stop that gateway, or set another UAS_DATA_DIR for this one; gateways share a database with DATABASE_URL.`,
  );
}

/**
 * Becomes the owner of a folder, unless another process owns it.
 *
 * @throws if no socket can be created in the folder
 */
export async function claimFolder(folder: string): Promise<OwnedFolder | ForeignFolder> {
  const path = socketPath(folder);
  for (let tries = 0; tries < triesMax; tries++) {
    const server = await listen(path);
    if (server !== undefined) return { release: () => close(server) };
    const owner = await askOwner(path);
    if (owner !== undefined) return { owner };
    await removeDead(path);
  }
  return { owner: "a process that has just started" };
}

/** Windows has pipes in a separate namespace; they end with their process. */
function socketPath(folder: string): string {
  if (process.platform !== "win32") return join(socketFolder(folder), "owner.sock");
  const hash = createHash("sha256").update(folder).digest("hex").slice(0, 16);
  return `\\\\.\\pipe\\uas-owner-${hash}`;
}

/** Listens, and identifies this process to clients. Undefined if the socket exists already. */
async function listen(path: string): Promise<Server | undefined> {
  const since = new Date().toISOString();
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.end(`process ${process.pid} on host ${hostname()} since ${since}`);
  });
  const { promise, resolve, reject } = Promise.withResolvers<Server | undefined>();
  server.once("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EADDRINUSE") return resolve(undefined);
    const text = `A socket cannot be created in the data folder (${error.message}): set UAS_DATA_DIR to a folder on a local disk.`;
    reject(new Error(text, { cause: error }));
  });
  server.listen({ path, exclusive: true }, () => resolve(server));
  server.unref();
  return promise;
}

async function close(server: Server): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.close(() => resolve());
  return promise;
}

/** The process that listens; undefined if there is none. */
async function askOwner(path: string): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const socket = connect(path);
  let said = "";
  socket.setTimeout(answerMs, () => socket.destroy(new Error(silentOwner)));
  socket.on("data", (piece) => (said += piece.toString()));
  socket.on("end", () => resolve(said === "" ? silentOwner : said));
  socket.on("error", ({ code }: NodeJS.ErrnoException) => {
    const isNobody = code === "ECONNREFUSED" || code === "ENOENT";
    resolve(isNobody ? undefined : silentOwner);
  });
  return promise;
}

/**
 * Removes the socket of a dead owner. Another process may have created a new socket there
 * meanwhile: that one is restored.
 */
async function removeDead(path: string): Promise<void> {
  const aside = `${path}~`;
  try {
    renameSync(path, aside);
  } catch {
    // Another process has removed it.
    return;
  }
  if ((await askOwner(aside)) === undefined) rmSync(aside, { force: true });
  else renameSync(aside, path);
}
