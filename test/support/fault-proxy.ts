/** A TCP proxy before a database that can hang, cut and refuse connections. */
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { Client } from "pg";

/** See {@link startFaultProxy}. */
export interface FaultProxy {
  /** The database through the proxy. */
  readonly url: string;
  /** Keeps bytes back, in both directions: the server does not answer. */
  hang(): void;
  /** Lets bytes through again. */
  resume(): void;
  /** Destroys every connection; new ones are accepted unless {@link refuse}. */
  cut(): void;
  /** Destroys the connections whose server has not answered yet what it was sent last. */
  cutWaiting(): void;
  /** Refuses (or accepts again) new connections. */
  refuse(isRefusing: boolean): void;
  /** Accepts the next connection, and never serves it. */
  neglectNext(): void;
  /**
   * Cuts every connection when the server's next answer arrives: the server has done its work, but
   * the client gets no answer.
   */
  cutAtNextAnswer(): void;
  /** The same, and refuses new connections from then on. Resolves when it has happened. */
  dieAtNextAnswer(): Promise<void>;
  /**
   * Resolves when the server has ended all connections that were cut: what it had been sent is done
   * by then, or never will be.
   */
  ended(): Promise<void>;
  close(): Promise<void>;
}

/** Starts a proxy before the database of `url`. Close it. */
export async function startFaultProxy(url: string): Promise<FaultProxy> {
  const { host, port } = new Client(url);
  const target = host.startsWith("/") ? { path: `${host}/.s.PGSQL.${port}` } : { host, port };
  let isRefusing = false;
  let isHanging = false;
  let cutsAtAnswer = false;
  let neglectsNext = false;
  let onCut = (): void => {};
  const clients = new Set<Socket>();
  const upstreams = new Set<Socket>();
  /** Clients that wait for an answer. */
  const waiting = new Set<Socket>();
  const cut = (): void => {
    for (const socket of clients) socket.destroy();
  };
  const track = (socket: Socket, sockets: Set<Socket>): Socket => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {});
    if (isHanging) socket.pause();
    return socket;
  };
  const server = createServer((socket) => {
    if (isRefusing) {
      socket.destroy();
      return;
    }
    const client = track(socket, clients);
    if (neglectsNext) {
      neglectsNext = false;
      return;
    }
    const upstream = track(connect(target), upstreams);
    client.on("data", (bytes) => {
      waiting.add(client);
      upstream.write(bytes);
    });
    upstream.on("data", (bytes) => {
      waiting.delete(client);
      if (!cutsAtAnswer) client.write(bytes);
      else {
        onCut();
        cut();
      }
      cutsAtAnswer = false;
    });
    // The server does what it has been sent, as it does for a process that has died, and then hangs
    // up.
    client.on("close", () => {
      waiting.delete(client);
      upstream.end().resume();
    });
    upstream.on("close", () => client.destroy());
    // Listeners start the flow.
    if (isHanging) for (const end of [client, upstream]) end.pause();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = new URL(url);
  const through = new URL(`postgres://127.0.0.1:${(server.address() as AddressInfo).port}`);
  through.username = new Client(url).user ?? "";
  through.password = address.password;
  through.pathname = address.pathname;
  return {
    url: through.href,
    hang() {
      isHanging = true;
      for (const socket of [...clients, ...upstreams]) socket.pause();
    },
    resume() {
      isHanging = false;
      for (const socket of [...clients, ...upstreams]) socket.resume();
    },
    cut,
    cutWaiting() {
      for (const socket of waiting) socket.destroy();
    },
    refuse: (value) => void (isRefusing = value),
    neglectNext: () => void (neglectsNext = true),
    cutAtNextAnswer: () => void (cutsAtAnswer = true),
    dieAtNextAnswer: () =>
      new Promise((resolve) => {
        cutsAtAnswer = true;
        onCut = () => {
          onCut = () => {};
          isRefusing = true;
          resolve();
        };
      }),
    async ended() {
      await Promise.all([...upstreams].map((socket) => once(socket, "close")));
    },
    async close() {
      for (const socket of [...clients, ...upstreams]) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
