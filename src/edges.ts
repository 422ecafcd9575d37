/** The edges: the public listener (REST, Connect, gRPC-web) and the internal one (gRPC, Connect). */
import type { DescService } from "@bufbuild/protobuf";
import { fastifyConnectPlugin } from "@connectrpc/connect-fastify";
import type { Interceptor } from "@connectrpc/connect";
import type { FastifyInstance } from "fastify";
import type { Logger } from "pino";
import { Health } from "../gen/health/v1/health_pb.ts";
import { ServerReflection } from "../gen/reflection_pb.ts";
import { type Authenticate, type Caller, GatewayStopping, type OnRefusedKey } from "./caller.ts";
import type { Settings } from "./config/config.ts";
import { type Pages, registerPages } from "./console/serve.ts";
import { consoleRpcPrefix, prepareConsole } from "./facade/console-rpc.ts";
import { createFacade } from "./facade/facade.ts";
import type { CallbackDoor, DirectHandlers, FindFile, NativePrefix } from "./facade/options.ts";
import type { RunningCalls } from "./inference/running-calls.ts";
import type { Metrics } from "./metrics.ts";
import { type CheckAccess, createAccessCheck } from "./rpc/access.ts";
import { createDirectTransport } from "./rpc/direct-transport.ts";
import { createHealthService, createReflectionService } from "./rpc/health.ts";
import { createAuthenticate } from "./rpc/interceptor/authenticate.ts";
import { createErrorMapping } from "./rpc/interceptor/error.ts";
import { readerGone } from "./rpc/interceptor/reader-gone.ts";
import { requestId } from "./rpc/interceptor/request-id.ts";
import { createSessionAuthenticate } from "./rpc/interceptor/session.ts";
import {
  type InternalListener,
  openInternalListener,
  type PlainAnswer,
} from "./rpc/internal-listener.ts";
import { listenOn } from "./rpc/listen.ts";
import { routerOptions } from "./rpc/router.ts";
import { type Service, serve } from "./rpc/service.ts";

/** What the edges need of the rest. */
export interface EdgeOptions {
  readonly settings: Settings;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly calls: RunningCalls;
  readonly authenticate: Authenticate;
  /** Told of calls with keys that are known and no good. */
  readonly onRefusedKey: OnRefusedKey;
  /** Whether calls can be served. Never asks a vendor. */
  readonly isReady: () => Promise<boolean>;
  readonly services: readonly Service[];
  /** The handlers of calls to models, for routes that call them directly. */
  readonly direct: DirectHandlers;
  /** Finds result files by their tokens. */
  readonly results: { find: FindFile };
  /** Takes vendors' callbacks. */
  readonly tasks: { readonly callbacks: CallbackDoor };
  /** The pages of the console; `undefined` beside them: they cannot be served. Default: there is no console. */
  readonly pages?: Promise<Pages | undefined> | undefined;
  /** Who presents the token of a console's cookie. */
  readonly signIn: { readonly identify: (token: string) => Promise<Caller> };
  /** The vendors' own interfaces that are served. */
  readonly native: { readonly prefixes: readonly NativePrefix[] };
  /** Writes the metrics of all workers. Default: those of this process, which is the only one. */
  readonly readMetrics?: (() => Promise<string>) | undefined;
}

/** The two listeners. */
export interface Edges {
  /** Begins to serve. @throws where a port is taken, naming it */
  listen(): Promise<{ readonly publicUrl: string; readonly internalUrl: string }>;
  /** Ends what still runs, tells its clients why, and closes both listeners. */
  close(): Promise<void>;
}

/** Builds them; they do not listen yet. */
export async function createEdges(options: EdgeOptions): Promise<Edges> {
  const { settings, log, metrics, calls, services, authenticate, onRefusedKey, isReady } = options;
  const stopping = new AbortController();
  const descriptions = services.map(({ service }) => service);
  const checkAccess = createAccessCheck(descriptions, [Health, ServerReflection]);
  const interceptors = (operatorToken: string | undefined): Interceptor[] => [
    requestId,
    createErrorMapping(log),
    createAuthenticate({ authenticate, onRefusedKey, checkAccess, operatorToken }),
  ];
  const publicInterceptors = interceptors(undefined);
  const facade = await createFacade({
    services: descriptions,
    transport: createDirectTransport(services, publicInterceptors),
    authenticate,
    onRefusedKey,
    metrics,
    log,
    isOpen: () => calls.isOpen,
    requireRoom: () => calls.requireRoom(),
    stopping: stopping.signal,
    isReady,
    direct: options.direct,
    findFile: options.results.find,
    callbacks: options.tasks.callbacks,
    natives: options.native.prefixes,
    trustProxy: settings.trustProxy,
  });
  const shutdownSignal = stopping.signal;
  const publicOnes = [readerGone, ...publicInterceptors];
  await facade.register(fastifyConnectPlugin, {
    ...routerOptions({ services, interceptors: publicOnes, shutdownSignal }),
    grpc: false,
  });
  await registerConsole(facade, options, { checkAccess, shutdownSignal });
  const standard = standardServices(descriptions, isReady);
  let internal: InternalListener | undefined;
  return {
    async listen() {
      const publicUrl = await listenOn(settings.listen, "UAS_LISTEN", (address) =>
        facade.listen(address),
      );
      internal = await listenOn(settings.internalListen, "UAS_INTERNAL_LISTEN", (address) =>
        openInternalListener({
          address,
          services: [...services, ...standard],
          interceptors: [readerGone, ...interceptors(settings.operatorToken)],
          shutdownSignal,
          page: pages(options),
        }),
      );
      return { publicUrl, internalUrl: internal.url };
    },
    async close(): Promise<void> {
      stopping.abort(new GatewayStopping("the gateway is stopping"));
      await calls.drain(endMs);
      await closeWithin(facade, internal);
      // Calls whose clients did not read have heard only now that nobody will.
      await calls.drain(endMs);
    },
  };
}

/** The longest message of a page, in bytes: forms, of whom anybody can send some. */
const consoleMessageBytesMax = 1024 * 1024;

/** The same services for browsers, under a prefix of their own, where a cookie says who calls; and the pages. */
async function registerConsole(
  facade: FastifyInstance,
  { settings, log, calls, services, signIn, pages: built }: EdgeOptions,
  { checkAccess, shutdownSignal }: { checkAccess: CheckAccess; shutdownSignal: AbortSignal },
): Promise<void> {
  const { identify } = signIn;
  const session = createSessionAuthenticate({ identify, checkAccess });
  const interceptors = [readerGone, requestId, createErrorMapping(log), session];
  const served = {
    ...routerOptions({ services, interceptors, shutdownSignal }),
    readMaxBytes: consoleMessageBytesMax,
  };
  await facade.register(
    async (scope) => {
      const contextValues = prepareConsole(scope, { ...settings, isOpen: () => calls.isOpen });
      await scope.register(fastifyConnectPlugin, { ...served, contextValues, grpc: false });
    },
    { prefix: consoleRpcPrefix },
  );
  if (built !== undefined) await facade.register((scope) => registerPages(scope, built));
}

/** Closes both listeners; cuts what is still connected after {@link endMs}. */
async function closeWithin(
  facade: FastifyInstance,
  internal: InternalListener | undefined,
): Promise<void> {
  const cut = setTimeout(() => {
    facade.server.closeAllConnections();
    internal?.destroy();
  }, endMs);
  await Promise.all([facade.close(), internal?.close()]);
  clearTimeout(cut);
}

/** What gRPC expects beside the contract. */
function standardServices(
  descriptions: readonly DescService[],
  isReady: () => Promise<boolean>,
): Service[] {
  return [
    serve(Health, createHealthService(descriptions, isReady)),
    serve(ServerReflection, createReflectionService([...descriptions, Health])),
  ];
}

/** How long ended calls may take to say so, in milliseconds. */
const endMs = 2_000;

function pages({ metrics: { registry }, isReady, readMetrics }: EdgeOptions) {
  const text = (status: number, body: string): PlainAnswer => ({
    status,
    contentType: "text/plain",
    body,
  });
  return async (path: string): Promise<PlainAnswer | undefined> => {
    if (path === "/healthz") return text(200, "ok\n");
    if (path === "/readyz")
      return (await isReady()) ? text(200, "ready\n") : text(503, "not ready\n");
    if (path !== "/metrics") return undefined;
    const body = await (readMetrics?.() ?? registry.metrics());
    return { status: 200, contentType: registry.contentType, body };
  };
}
