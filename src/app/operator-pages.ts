/** The plain pages of the internal listener: `/healthz`, `/readyz` and `/metrics`. */
import { databaseHash } from "../core/data-sockets.ts";
import type { Settings } from "../config/config.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { PlainAnswer } from "../edge/rpc/internal-listener.ts";

/** Options of {@link createOperatorPages}. */
interface OperatorPageOptions {
  readonly metrics: Pick<Metrics, "registry">;
  /** Why calls cannot be served; `undefined` if they can. */
  readonly whyNotReady: () => Promise<string | undefined>;
  /** Renders the metrics of all workers. By default the metrics of this process, the only one. */
  readonly readMetrics?: (() => Promise<string>) | undefined;
}

/** Creates the pages. They return undefined for any other path. */
export function createOperatorPages({
  metrics: { registry },
  whyNotReady,
  readMetrics,
}: OperatorPageOptions) {
  const text = (status: number, body: string): PlainAnswer => ({
    status,
    contentType: "text/plain",
    body,
  });
  return async (path: string): Promise<PlainAnswer | undefined> => {
    if (path === "/healthz") return text(200, "ok\n");
    if (path === "/readyz") {
      const reason = await whyNotReady();
      return reason === undefined ? text(200, "ready\n") : text(503, `not ready: ${reason}\n`);
    }
    if (path !== "/metrics") return undefined;
    const body = await (readMetrics?.() ?? registry.metrics());
    return { status: 200, contentType: registry.contentType, body };
  };
}

/**
 * Creates the page of the command line's socket, `/gateway`: a hash of the database's address, and
 * the address of the console.
 *
 * @param listenUrl the address of the public listener
 */
export function createSocketPages(settings: Settings, listenUrl: () => string) {
  const { databaseUrl, consoleUrl, publicUrl } = settings;
  const database = databaseHash(databaseUrl);
  return async (path: string): Promise<PlainAnswer | undefined> => {
    if (path !== "/gateway") return undefined;
    const about = { database, consoleUrl: consoleUrl ?? publicUrl ?? listenUrl() };
    return { status: 200, contentType: "application/json", body: JSON.stringify(about) };
  };
}
