/** The two listeners: public (REST, Connect, gRPC-web) and internal (gRPC, Connect). */
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import type { ContextValues, Interceptor } from "@connectrpc/connect";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Logger } from "pino";
import { Health } from "../../gen/health/v1/health_pb.ts";
import { ServerReflection } from "../../gen/reflection_pb.ts";
import {
  CompleteRequestSchema,
  EmbedRequestSchema,
  InferenceService,
  ModerateRequestSchema,
  RerankRequestSchema,
} from "../../gen/uas/inference/v1/inference_service_pb.ts";
import {
  ExchangeMediaRequestSchema,
  MediaService,
} from "../../gen/uas/inference/v1/media_service_pb.ts";
import {
  ExchangeRequestSchema as NativeRequestSchema,
  FollowLinkRequestSchema,
} from "../../gen/uas/native/v1/native_service_pb.ts";
import type { Settings } from "../config/config.ts";
import { type Pages, registerPages } from "../console/serve.ts";
import {
  type Authenticate,
  type Caller,
  GatewayStopping,
  type OnRefusedKey,
} from "../core/caller.ts";
import type { Clock } from "../core/clock.ts";
import { markOwnPage } from "../core/inert-reply.ts";
import type { Metrics } from "../core/metrics.ts";
import type { NativePrefix } from "../core/native-prefix.ts";
import { serve, type Service } from "../core/service.ts";
import { UnfinishedBodies } from "../core/unfinished-bodies.ts";
import { consoleRpcPrefix, prepareConsole } from "../facade/console-rpc.ts";
import { createFacade } from "../facade/facade.ts";
import type {
  CallbackReceiver,
  DirectCall,
  DirectHandlers,
  FindFile,
  HandleWire,
} from "../facade/options.ts";
import type { HandleBody, InferenceHandlers } from "../inference/handlers.ts";
import type { CallContext } from "../inference/pipeline/context.ts";
import type { RunningCalls } from "../inference/running-calls.ts";
import type { NativeHandlers } from "../native/service.ts";
import { type CheckAccess, createAccessCheck } from "../rpc/access.ts";
import { createDirectTransport } from "../rpc/direct-transport.ts";
import { createKeyGate, createSessionGate } from "../rpc/gate.ts";
import {
  createHealthService,
  createReflectionService,
  ServerReflectionAlpha,
  type InternalListener,
  listenOn,
  openInternalListener,
  type PlainAnswer,
} from "../rpc/internal-listener.ts";
import {
  cancelOnDisconnect,
  createAccess,
  createClocked,
  createErrorMapping,
  requestId as requestIdInterceptor,
} from "../rpc/interceptors.ts";
import { createRpcHandlers, type RouterOptions } from "../rpc/router.ts";

/** Dependencies of the edges. */
export interface EdgeOptions {
  readonly settings: Settings;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly calls: RunningCalls;
  readonly authenticate: Authenticate;
  /** Called for recognised keys that are disabled, deleted or expired. */
  readonly onRefusedKey: OnRefusedKey;
  /** Why calls cannot be served; `undefined` if they can. Never contacts a vendor. */
  readonly whyNotReady: () => Promise<string | undefined>;
  readonly services: readonly Service[];
  /** Handlers of model calls, which REST routes call directly. */
  readonly direct: DirectHandlers;
  /** Finds result files by token. */
  readonly results: { find: FindFile };
  /** Receives vendors' callbacks. */
  readonly tasks: { readonly callbacks: CallbackReceiver };
  /** The console's pages; resolves to `undefined` where they cannot be served. Default: no console. */
  readonly pages?: Promise<Pages | undefined> | undefined;
  /** Identifies the owner of a session cookie. */
  readonly signIn: { readonly identify: (token: string) => Promise<Caller> };
  /** Native vendor APIs to serve. */
  readonly native: { readonly prefixes: readonly NativePrefix[] };
  /** The origins whose pages may call. Default: none. */
  readonly corsOrigins?: readonly string[] | undefined;
  /** Renders the metrics of all workers. Default: those of this process, the only one. */
  readonly readMetrics?: (() => Promise<string>) | undefined;
}

/** The two listeners. */
export interface Edges {
  /** Starts listening. @throws where a port is in use; the error names it */
  listen(): Promise<{ readonly publicUrl: string; readonly internalUrl: string }>;
  /**
   * Announces the end: everything is still served, but clients are asked to connect anew.
   *
   * @param isReplaced whether another process serves at the same address. If not, `/readyz` answers 503 from now on
   */
  announceStop(isReplaced: boolean): void;
  /** Takes no new connections. Open ones are closed when they are idle. */
  stopListening(): void;
  /** Ends running calls, tells their clients the reason, and closes both listeners. */
  close(): Promise<void>;
}

/** Creates the listeners; they do not listen yet. */
export async function createEdges(options: EdgeOptions): Promise<Edges> {
  const { settings, log, metrics, calls, services, authenticate, clock, onRefusedKey } = options;
  const stopping = new AbortController();
  const draining = new AbortController();
  const end: AnnouncedEnd = { as: undefined };
  const whyNotReady = async (): Promise<string | undefined> =>
    end.as === "stop" ? "the gateway is stopping" : options.whyNotReady();
  const descriptions = services.map(({ service }) => service);
  const standard = standardServices(descriptions, whyNotReady);
  const checkAccess = createAccessCheck(
    descriptions,
    standard.map(({ service }) => service),
  );
  const interceptors: Interceptor[] = [
    requestIdInterceptor,
    createErrorMapping(log),
    createClocked(clock),
    createAccess(checkAccess),
  ];
  const bodies = createBodies(metrics);
  const facade = await createFacade({
    ...facadeOptions({ ...options, whyNotReady }),
    services: descriptions,
    transport: createDirectTransport(services, interceptors),
    ...{ bodies, draining: draining.signal, stopping: stopping.signal },
  });
  const shutdownSignal = stopping.signal;
  const keyGate = { ...{ authenticate, onRefusedKey, checkAccess, log }, operatorToken: undefined };
  const network = {
    interceptors: [cancelOnDisconnect, ...interceptors],
    ...{ bodies, shutdownSignal },
  };
  const requestGate = createKeyGate({ ...keyGate, isCompressionAllowed: false });
  registerRpcs(facade, { services, ...network, requestGate, grpc: false });
  const listening: ListeningAddress = { url: "" };
  await registerConsole(facade, options, { ...network, checkAccess, listening });
  const internalOptions = {
    ...network,
    services: [...services, ...standard],
    requestGate: createKeyGate({
      ...keyGate,
      operatorToken: settings.operatorToken,
      isCompressionAllowed: true,
    }),
    page: pages({ ...options, whyNotReady }),
  };
  const parts = { settings, calls, facade, internalOptions, draining, stopping, end, listening };
  return new Listeners(parts);
}

/** The address of the public listener, without a trailing slash; empty until it listens. */
interface ListeningAddress {
  url: string;
}

/** How the end of this process was announced. */
interface AnnouncedEnd {
  /** `replacement`: another process serves at the same address. */
  as: "stop" | "replacement" | undefined;
}

/** What {@link Listeners} opens and closes. */
interface ListenerParts extends Pick<EdgeOptions, "settings" | "calls"> {
  readonly facade: FastifyInstance;
  readonly internalOptions: Omit<Parameters<typeof openInternalListener>[0], "address">;
  /** Aborted when clients are to connect anew. */
  readonly draining: AbortController;
  /** Aborted when running requests must end. */
  readonly stopping: AbortController;
  readonly end: AnnouncedEnd;
  readonly listening: ListeningAddress;
}

/** Both listeners, from their start to their end. */
class Listeners implements Edges {
  readonly #parts: ListenerParts;
  #internal: InternalListener | undefined;
  #closing: Promise<unknown> | undefined;
  /** The public listener, where its port was left to another process; resolves when its connections have ended. */

  constructor(parts: ListenerParts) {
    this.#parts = parts;
    // The reply tells the client to connect anew.
    parts.facade.server.prependListener("request", (_request, response) => {
      if (parts.end.as !== undefined) response.shouldKeepAlive = false;
    });
  }

  async listen(): Promise<{ readonly publicUrl: string; readonly internalUrl: string }> {
    const { settings, facade, internalOptions } = this.#parts;
    const publicUrl = await listenOn(settings.listen, "UAS_LISTEN", (address) =>
      facade.listen(address),
    );
    this.#parts.listening.url = publicUrl.replace(/\/$/, "");
    this.#internal = await listenOn(settings.internalListen, "UAS_INTERNAL_LISTEN", (address) =>
      openInternalListener({ address, ...internalOptions }),
    );
    return { publicUrl, internalUrl: this.#internal.url };
  }

  announceStop(isReplaced: boolean): void {
    const as = isReplaced ? "replacement" : "stop";
    this.#parts.end.as = as;
    this.#parts.draining.abort(as);
    this.#internal?.announceStop();
  }

  stopListening(): void {
    this.#closing ??= Promise.all([closeServer(this.#parts.facade), this.#internal?.close()]);
  }

  async close(): Promise<void> {
    const { stopping, calls, facade } = this.#parts;
    stopping.abort(new GatewayStopping("the gateway is stopping"));
    await calls.drain(endMs);
    this.stopListening();
    await closeWithin(this.#closing, facade, this.#internal);
    // Clients that were not reading have only now been disconnected.
    await calls.drain(endMs);
  }
}

/** What the facade takes from the rooms and the settings. */
function facadeOptions({ calls, direct, settings, corsOrigins, ...options }: EdgeOptions) {
  const { authenticate, onRefusedKey, metrics, log, whyNotReady, native } = options;
  const { trustProxy, publicUrl, consoleUrl } = settings;
  return {
    ...{ authenticate, onRefusedKey, metrics, log, whyNotReady, direct, trustProxy },
    ...{ publicUrl, consoleUrl },
    isOpen: () => calls.isOpen,
    requireCapacity: () => calls.requireCapacity(),
    findFile: options.results.find,
    callbacks: options.tasks.callbacks,
    natives: native.prefixes,
    // Its pages call the API with a key of their own.
    corsOrigins: [...(corsOrigins ?? []), ...(consoleUrl === undefined ? [] : [consoleUrl])],
  };
}

/** The budgets of request bodies, over all listeners of the process. */
function createBodies(metrics: Metrics): UnfinishedBodies {
  const bodies = new UnfinishedBodies(() =>
    metrics.limitRefusals.inc({ limit: "unfinished_bodies" }),
  );
  const help = "Bytes of request bodies that have begun and are not complete.";
  metrics.gauge("uas_unfinished_body_bytes", help, () => bodies.bytes);
  return bodies;
}

/** Longest message from a page, in bytes: pages send forms, and anybody can send one. */
const consoleMessageBytesMax = 1024 * 1024;

/**
 * Serves RPCs on the public listener. One route for each service: with one for each RPC and HTTP method, 1,800 routes took a
 * fifth of the CPU of opening a gateway in a warm process.
 *
 * @param contextValues those of a request. Default: none
 */
function registerRpcs(
  scope: FastifyInstance,
  options: RouterOptions,
  contextValues: (request: FastifyRequest) => ContextValues | undefined = () => undefined,
): void {
  const rpcs = createRpcHandlers(options);
  for (const { typeName } of options.services.map(({ service }) => service)) {
    scope.all<{ Params: { method: string } }>(`/${typeName}/:method`, (request, reply) => {
      const handle = rpcs.get(`/${typeName}/${request.params.method}`);
      if (handle === undefined) return reply.callNotFound();
      reply.hijack();
      void handle(request.raw, reply.raw, contextValues(request));
    });
  }
}

/** Serves the same services to browsers under a prefix of their own, authenticated by cookie, and the pages. */
async function registerConsole(
  facade: FastifyInstance,
  { settings, log, calls, services, signIn, pages: built }: EdgeOptions,
  {
    checkAccess,
    listening,
    ...network
  }: Omit<RouterOptions, "services" | "requestGate"> & {
    readonly checkAccess: CheckAccess;
    readonly listening: ListeningAddress;
  },
): Promise<void> {
  const { identify } = signIn;
  const requestGate = createSessionGate({
    identify,
    checkAccess,
    log,
    isCompressionAllowed: false,
  });
  const messageBytesMax = consoleMessageBytesMax;
  const rpcs = { services, ...network, requestGate, messageBytesMax, grpc: false };
  await facade.register(
    async (scope) => {
      const contextValues = prepareConsole(scope, {
        publicUrl: settings.consoleUrl ?? settings.publicUrl,
        isOpen: () => calls.isOpen,
      });
      registerRpcs(scope, rpcs, contextValues);
    },
    { prefix: consoleRpcPrefix },
  );
  if (built === undefined) return;
  const { consoleUrl, publicUrl } = settings;
  const apiOrigin = () => (consoleUrl === undefined ? "" : (publicUrl ?? listening.url));
  await facade.register(async (scope) => {
    scope.addHook("onRequest", (request, reply, done) => {
      // "/" only redirects.
      if (request.routeOptions.url !== "/") markOwnPage(reply.raw);
      done();
    });
    await registerPages(scope, built, apiOrigin);
  });
}

/** Closes both listeners; after {@link endMs} the remaining connections are cut. */
async function closeWithin(
  listeners: Promise<unknown> | undefined,
  facade: FastifyInstance,
  internal: InternalListener | undefined,
): Promise<void> {
  const cut = setTimeout(() => {
    facade.server.closeAllConnections();
    internal?.destroy();
  }, endMs);
  await Promise.all([listeners, facade.close()]);
  clearTimeout(cut);
}

/** How often a stopping listener closes connections that have become idle, in milliseconds. */
const idleScanMs = 20;

/** Takes no new connections; resolves when the last one has ended. */
async function closeServer({ server }: FastifyInstance): Promise<void> {
  // A connection whose reply began before the stop was announced would be used again.
  const scan = setInterval(() => server.closeIdleConnections(), idleScanMs);
  await new Promise<void>((resolve) => server.close(() => resolve()));
  clearInterval(scan);
}

/** The services that gRPC clients expect besides the contract. */
function standardServices(
  descriptions: readonly DescService[],
  whyNotReady: () => Promise<string | undefined>,
): Service[] {
  const reflection = createReflectionService([...descriptions, Health]);
  return [
    serve(
      Health,
      createHealthService(descriptions, async () => (await whyNotReady()) === undefined),
    ),
    serve(ServerReflection, reflection),
    { service: ServerReflectionAlpha, implementation: reflection },
  ];
}

/** Time for cancelled calls to report their end, in milliseconds. */
const endMs = 2_000;

function pages({ metrics: { registry }, whyNotReady, readMetrics }: EdgeOptions) {
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

// Connects the routes of model calls with the handlers of the rooms.

/** Connects the facade with the handlers. Messages are plain objects: `create` would cost each call 2 µs. */
export function directHandlers(
  inference: InferenceHandlers,
  native: NativeHandlers,
): DirectHandlers {
  const { exchange, embed, rerank, moderate, complete } = InferenceService.method;
  const { exchangeMedia } = MediaService.method;
  return {
    wire: new Map<DescMethod, HandleWire>([
      [exchange, (request, call) => inference.exchange(request, contextOf(call), call)],
      [embed, withBody(EmbedRequestSchema.typeName, inference.embed)],
      [rerank, withBody(RerankRequestSchema.typeName, inference.rerank)],
      [moderate, withBody(ModerateRequestSchema.typeName, inference.moderate)],
      [complete, withBody(CompleteRequestSchema.typeName, inference.complete)],
      [
        exchangeMedia,
        ({ mediaOperation, path, query, headers, body, strict, reportCost, form }, call) => {
          const { contentType = "", pieces } = form ?? {};
          const fields = { path, query, headers, body, strict, reportCost, contentType };
          const $typeName = ExchangeMediaRequestSchema.typeName;
          const message = { $typeName, operation: mediaOperation, ...fields };
          return inference.exchangeMedia(message, contextOf(call), call, pieces);
        },
      ],
    ]),
    native(fields, call) {
      const message = { $typeName: NativeRequestSchema.typeName, ...fields };
      return native.exchange(message, contextOf(call), call);
    },
    followLink(fields, call) {
      const message = { $typeName: FollowLinkRequestSchema.typeName, ...fields };
      return native.followLink(message, call.signal, call);
    },
  };
}

function contextOf({ keyCaller, requestId, idempotencyKey, signal }: DirectCall): CallContext {
  return { caller: keyCaller, requestId, idempotencyKey, signal };
}

type WireFields = Parameters<HandleWire>[0];

/** Passes a request with one JSON body on, as the message of its RPC. */
function withBody<Name extends string>(
  $typeName: Name,
  handle: HandleBody<
    { readonly $typeName: Name } & Pick<
      WireFields,
      "dialect" | "path" | "query" | "headers" | "body"
    >
  >,
): HandleWire {
  return ({ dialect, path, query, headers, body }, call) =>
    handle({ $typeName, dialect, path, query, headers, body }, contextOf(call), call);
}
