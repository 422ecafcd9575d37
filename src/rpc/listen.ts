import type { ListenAddress } from "../config/config.ts";

/**
 * Opens a listener, and says in one clear line why it cannot.
 *
 * @param variable the environment variable that sets the address
 */
export async function listenOn<Result>(
  address: ListenAddress,
  variable: string,
  open: (address: ListenAddress) => Promise<Result>,
): Promise<Result> {
  try {
    return await open(address);
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
    const reason = reasons[String(code)];
    if (reason === undefined) throw cause;
    const { host, port } = address;
    throw new Error(`cannot listen on ${host}:${port}: ${reason}; set ${variable}=HOST:PORT`, {
      cause,
    });
  }
}

const reasons: Readonly<Record<string, string>> = {
  EADDRINUSE: "the port is taken by another program",
  EACCES: "this user may not open that port",
  EADDRNOTAVAIL: "this machine has no such address",
};
