/**
 * The address of the embedded PostgreSQL: a Unix socket in the data folder, which only its owner
 * can enter.
 */
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { socketFolder } from "../../core/data-sockets.ts";

/** The user and the database that initdb creates. */
export const embeddedUser = "postgres";

/** The number in the socket's file name; nothing listens on it. */
const socketPort = 5432;

/** The address on which a server listens. */
export type Listen =
  | { readonly kind: "socket"; readonly folder: string; readonly port: number }
  | { readonly kind: "loopback"; readonly port: number; readonly password: string };

/**
 * Windows' PostgreSQL has no socket that a folder's rights protect: loopback and a password there.
 */
export function usesSockets(): boolean {
  return process.platform !== "win32";
}

/**
 * Chooses the address for a new server over `folder`.
 *
 * @param before the address of its predecessor, which clients use. Undefined if there was none.
 */
export async function chooseListen(
  folder: string,
  sockets: boolean,
  before: Listen | undefined,
): Promise<Listen> {
  if (before) return before;
  return sockets
    ? socketListen(folder)
    : { kind: "loopback", port: await freePort(), password: loopbackPassword(folder) };
}

/** The socket of the server over `folder`: it never changes. */
export function socketListen(folder: string): Extract<Listen, { kind: "socket" }> {
  return { kind: "socket", folder: socketFolder(folder), port: socketPort };
}

/** The server flags for {@link Listen}. */
export function listenFlags(listen: Listen): string[] {
  return listen.kind === "socket"
    ? // Relative to the server's working folder, the data folder: its own path may be too long, or a list by its commas.
      ["listen_addresses=", "unix_socket_directories=.", "unix_socket_permissions=0700"].concat(
        `port=${listen.port}`,
      )
    : ["listen_addresses=127.0.0.1", "unix_socket_directories=", `port=${listen.port}`];
}

/** The address for clients. Contains the password if there is one. */
export function listenUrl(listen: Listen): string {
  return listen.kind === "socket"
    ? `postgresql://${embeddedUser}@localhost:${listen.port}/postgres?host=${encodeURIComponent(listen.folder)}`
    : `postgresql://${embeddedUser}:${listen.password}@127.0.0.1:${listen.port}/postgres`;
}

/**
 * The password of the loopback form, created once, stored next to the data, readable by its owner
 * only.
 */
export function loopbackPassword(folder: string): string {
  const file = passwordFile(folder);
  try {
    writeFileSync(file, randomBytes(24).toString("base64url"), { mode: 0o600, flag: "wx" });
  } catch (error) {
    // Another process created it first.
    if (!existsSync(file)) throw error;
  }
  return readFileSync(file, "utf8");
}

/** The file that contains {@link loopbackPassword}. */
export function passwordFile(folder: string): string {
  return `${folder}.password`;
}

/** A port of the loopback interface that is currently free. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(0, "127.0.0.1", resolve);
  });
  const address = server.address();
  await new Promise((resolve) => {
    server.close(resolve);
  });
  return typeof address === "object" && address ? address.port : 0;
}
