/** Serves the console: its RPCs, authenticated by cookie, and its pages. */
import type { FastifyInstance } from "fastify";
import { type Pages, registerPages } from "../edge/rest/pages.ts";
import { markOwnPage } from "../edge/inert-reply.ts";
import { consoleRpcPrefix, prepareConsole } from "../edge/rest/console-rpc.ts";
import type { RouterOptions } from "../edge/rpc/router.ts";
import { registerRpcs } from "./public-rpcs.ts";

/** Options of {@link registerConsole}. */
interface ConsoleOptions {
  readonly rpcs: Omit<RouterOptions, "requestGate" | "grpc" | "messageBytesMax">;
  /** Identifies callers by their session cookie. */
  readonly requestGate: RouterOptions["requestGate"];
  /** Whether new requests are served; false while the gateway drains. */
  readonly isOpen: () => boolean;
  /** The origin of the console; undefined if unknown. */
  readonly ownUrl: string | undefined;
  /** The origin of the API for the pages; empty if it is the origin of the pages. */
  readonly apiOrigin: () => string;
  /**
   * The pages; resolves to undefined if they cannot be served. Undefined if there is no console.
   */
  readonly pages: Promise<Pages | undefined> | undefined;
}

/** Maximum length of a message from a page: pages send forms, and any client can send one. */
const consoleMessageBytesMax = 1024 * 1024;

/** Registers the console's RPCs under a separate prefix, and its pages. */
export async function registerConsole(
  facade: FastifyInstance,
  { rpcs, requestGate, isOpen, ownUrl, apiOrigin, pages }: ConsoleOptions,
): Promise<void> {
  await facade.register(
    async (scope) => {
      const contextValues = prepareConsole(scope, { publicUrl: ownUrl, isOpen });
      registerRpcs(
        scope,
        { ...rpcs, requestGate, messageBytesMax: consoleMessageBytesMax, grpc: false },
        contextValues,
      );
    },
    { prefix: consoleRpcPrefix },
  );
  if (pages === undefined) return;
  await facade.register(async (scope) => {
    scope.addHook("onRequest", (request, reply, done) => {
      // "/" only redirects.
      if (request.routeOptions.url !== "/") markOwnPage(reply.raw);
      done();
    });
    await registerPages(scope, pages, apiOrigin);
  });
}
