/** The life of a server: start, say where it is, wait for a signal, drain, end. */
import { buildApp } from "../app.ts";
import type { Config, Settings } from "../config/config.ts";
import { firstSignal } from "./first-signal.ts";
import { openPages } from "./pages.ts";
import { createServerLog } from "./server-log.ts";
import { supervise } from "./supervise.ts";
import { setV8Flags } from "./v8-flags.ts";
import { announce } from "./welcome.ts";

/** What says how this installation is set up. */
export interface ServeOptions {
  readonly settings: Settings;
  readonly config: Config;
}

/** Runs a gateway until SIGTERM or SIGINT; resolves when it has drained. A second signal ends at once. */
export async function serve(options: ServeOptions): Promise<void> {
  setV8Flags();
  if (options.settings.workers > 1) return supervise(options);
  const signal = firstSignal();
  const stopping = new AbortController();
  const logging = createServerLog(options);
  const { log } = logging;
  try {
    const pages = openPages(log, stopping.signal);
    const app = await buildApp({ ...options, log, pages });
    try {
      await announce(app, { ...options, log, urls: await app.listen() });
      log.info({ signal: await signal }, "draining");
    } finally {
      stopping.abort();
      await app.close();
    }
    log.info("stopped");
  } finally {
    logging.flush();
  }
}
