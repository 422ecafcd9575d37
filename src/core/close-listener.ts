/** Ends the listening of a server whose port another process serves as well (`UAS_REUSE_PORT`). */
import { Server } from "node:net";
import { setImmediate as turn } from "node:timers/promises";

/** Turns of the event loop in which waiting connections are accepted, at most: more come all the time. */
const turnsMax = 100;

/**
 * Takes no new connections, and leaves the open ones as they are: unlike `close` of an HTTP server, which ends idle ones
 * that may have a request on its way. Connections that wait to be accepted are accepted first, because the system resets
 * those of a closed socket, although another process listens at the same port.
 *
 * @returns resolves when the last connection has ended
 */
export async function closeListener(server: Server): Promise<void> {
  let accepted = 0;
  const count = (): void => void accepted++;
  server.on("connection", count);
  for (let turns = 0, before = -1; accepted !== before && turns < turnsMax; turns++) {
    before = accepted;
    // The first turn may be half over, behind the part that accepts.
    await turn();
    await turn();
  }
  server.off("connection", count);
  await new Promise<void>((resolve) => Server.prototype.close.call(server, () => resolve()));
}
