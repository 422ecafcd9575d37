/** Loads the console's pages of a server. */
import type { Logger } from "pino";
import { buildPages, NoBuilder, readPages } from "./built-pages.ts";
import type { Pages } from "../edge/rest/pages.ts";

/** Reads the pages. Builds them first if necessary, while the gateway already serves calls. */
export async function openPages(log: Logger, signal: AbortSignal): Promise<Pages | undefined> {
  return readFound(await findPages(log, signal), log);
}

/**
 * Resolves with the folder of the built pages; undefined if there is none. The reason was logged.
 */
export async function findPages(log: Logger, signal: AbortSignal): Promise<string | undefined> {
  try {
    return await buildPages(signal);
  } catch (error) {
    if (error instanceof NoBuilder) log.warn(noBuilderText);
    else if (!signal.aborted) log.error({ err: error }, unservedText);
    return undefined;
  }
}

/** Reads the pages in a folder. */
export async function readFound(
  folder: string | undefined,
  log: Logger,
): Promise<Pages | undefined> {
  try {
    return folder === undefined ? undefined : await readPages(folder);
  } catch (error) {
    log.error({ err: error }, unservedText);
    return undefined;
  }
}

const unservedText = "the console cannot be served";

/** Log text if pages cannot be built, as after `npm ci --omit=dev`. */
const noBuilderText =
  "the console has no pages, and their builder is not installed: run `npm ci && npm run console`, optionally `npm prune --omit=dev`, and start again; calls are still served";
