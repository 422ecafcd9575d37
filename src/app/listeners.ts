/**
 * The public listener, the internal listener and the socket of the command line, from their start
 * to their end.
 */
import { chmodSync } from "node:fs";
import type { FastifyInstance } from "fastify";
import type { Settings } from "../config/config.ts";
import { GatewayStopping } from "../core/caller.ts";
import type { RunningCalls } from "../calls/running-calls.ts";
import {
  type InternalListener,
  listenOn,
  openInternalListener,
} from "../edge/rpc/internal-listener.ts";

/** Time for cancelled calls to report their end. */
const endMs = 2_000;

/** The listeners. */
export interface Edges {
  /** Starts listening. @throws if a port is in use; the error names it */
  listen(): Promise<{ readonly publicUrl: string; readonly internalUrl: string }>;
  /**
   * Announces the end: everything is still served, but clients are requested to reconnect.
   *
   * @param isReplaced whether another process serves the same address. If not, `/readyz` returns
   * 503 from now on
   */
  announceStop(isReplaced: boolean): void;
  /** Takes no new connections. Open ones are closed when they are idle. */
  stopListening(): void;
  /** Ends running calls, sends their clients the reason, and closes the listeners. */
  close(): Promise<void>;
}

/** Options of the internal listener, without its address. */
type InternalOptions = Omit<Parameters<typeof openInternalListener>[0], "address">;

/** The handlers of the listeners. */
interface Served {
  readonly facade: FastifyInstance;
  readonly internal: InternalOptions;
  /** The socket of the command line; undefined if there is none. */
  readonly operator: OperatorOptions | undefined;
}

/** Options of the socket of the command line. */
type OperatorOptions = InternalOptions & { readonly path: string };

/** All listeners. Call {@link serve} first. */
export class Listeners implements Edges {
  readonly #settings: Pick<Settings, "listen" | "internalListen">;
  readonly #calls: Pick<RunningCalls, "drain">;
  /** Aborted if clients should reconnect. */
  readonly #draining = new AbortController();
  /** Aborted when running requests must end. */
  readonly #stopping = new AbortController();
  #served: Served | undefined;
  #internal: InternalListener | undefined;
  #operator: InternalListener | undefined;
  /** The announced kind of end. `replacement`: another process serves the same address. */
  #announced: "stop" | "replacement" | undefined;
  #closing: Promise<unknown> | undefined;
  #publicUrl = "";

  constructor({ settings, calls }: { settings: Settings; calls: Pick<RunningCalls, "drain"> }) {
    this.#settings = settings;
    this.#calls = calls;
  }

  /**
   * Aborted if clients should reconnect, with "replacement" if another process serves the same
   * address.
   */
  get draining(): AbortSignal {
    return this.#draining.signal;
  }

  /** Aborted when running requests must end. */
  get stopping(): AbortSignal {
    return this.#stopping.signal;
  }

  /** Whether the end was announced, and no other process serves the same address. */
  get isStopping(): boolean {
    return this.#announced === "stop";
  }

  /** The address of the public listener, without a trailing slash; empty until it listens. */
  get publicUrl(): string {
    return this.#publicUrl;
  }

  /** Sets the handlers of the listeners. */
  serve(served: Served): void {
    this.#served = served;
    const { facade } = served;
    // The reply requests the client to reconnect.
    facade.server.prependListener("request", (_request, response) => {
      if (this.#announced !== undefined) response.shouldKeepAlive = false;
    });
  }

  async listen(): Promise<{ readonly publicUrl: string; readonly internalUrl: string }> {
    const { facade, internal, operator } = this.#parts;
    // First: the gateway announces its addresses last, and commands work then.
    if (operator !== undefined) this.#operator = await openSocket(operator);
    const publicUrl = await listenOn(this.#settings.listen, "UAS_LISTEN", (address) =>
      facade.listen(address),
    );
    this.#publicUrl = publicUrl.replace(/\/$/, "");
    this.#internal = await listenOn(
      this.#settings.internalListen,
      "UAS_INTERNAL_LISTEN",
      (address) => openInternalListener({ address, ...internal }),
    );
    return { publicUrl, internalUrl: this.#internal.url };
  }

  announceStop(isReplaced: boolean): void {
    this.#announced = isReplaced ? "replacement" : "stop";
    this.#draining.abort(this.#announced);
    this.#internal?.announceStop();
  }

  stopListening(): void {
    const rpcs = [this.#internal, this.#operator].map((each) => each?.close());
    this.#closing ??= Promise.all([closeServer(this.#parts.facade), ...rpcs]);
  }

  async close(): Promise<void> {
    this.#stopping.abort(new GatewayStopping("the gateway is stopping"));
    await this.#calls.drain(endMs);
    this.stopListening();
    const rpcs = [this.#internal, this.#operator];
    await closeWithin(this.#closing, this.#parts.facade, rpcs);
    // Clients that were not reading have only now been disconnected.
    await this.#calls.drain(endMs);
  }

  get #parts(): Served {
    if (this.#served === undefined) throw new Error("the listeners serve nothing yet");
    return this.#served;
  }
}

/** Opens the socket of the command line, for this user only. */
async function openSocket({ path, ...options }: OperatorOptions): Promise<InternalListener> {
  const listener = await openInternalListener({ address: { path }, ...options });
  chmodSync(path, 0o600);
  return listener;
}

/** Closes the listeners; after {@link endMs} the remaining connections are cut. */
async function closeWithin(
  listeners: Promise<unknown> | undefined,
  facade: FastifyInstance,
  rpcs: readonly (InternalListener | undefined)[],
): Promise<void> {
  const cut = setTimeout(() => {
    facade.server.closeAllConnections();
    for (const each of rpcs) each?.destroy();
  }, endMs);
  await Promise.all([listeners, facade.close()]);
  clearTimeout(cut);
}

/** Interval at which a stopping listener closes connections that have become idle. */
const idleScanMs = 20;

/** Takes no new connections; resolves when the last one has ended. */
async function closeServer({ server }: FastifyInstance): Promise<void> {
  // A connection whose reply began before the stop was announced would be used again.
  const scan = setInterval(() => server.closeIdleConnections(), idleScanMs);
  await new Promise<void>((resolve) => server.close(() => resolve()));
  clearInterval(scan);
}
