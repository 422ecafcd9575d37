/** The console's pages, of a server. */
import type { Logger } from "pino";
import { buildPages, NoBuilder, readPages } from "../console/built.ts";
import type { Pages } from "../console/serve.ts";

/** What is said where there are no pages: for `npm ci --omit=dev`. */
const noBuilderText =
  "the console has no pages, and their builder is not installed: run `npm ci && npm run console`, then `npm prune --omit=dev` if you like, and start again; calls are served";

/** The console's pages, built while the gateway already serves calls where they are not there yet. */
export async function openPages(log: Logger, signal: AbortSignal): Promise<Pages | undefined> {
  try {
    return await readPages(await buildPages(signal));
  } catch (error) {
    if (error instanceof NoBuilder) log.warn(noBuilderText);
    else if (!signal.aborted) log.error({ err: error }, "the console cannot be served");
    return undefined;
  }
}
