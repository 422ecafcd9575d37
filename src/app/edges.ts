/**
 * Connects the edges with the rooms: REST, Connect and gRPC-web on the public listener, the console
 * on the same listener, gRPC and Connect on the internal listener.
 */
import { tokensOf } from "../config/settings.ts";
import type { DescService } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import type { Logger } from "pino";
import { Health } from "../../gen/health/v1/health_pb.ts";
import { ServerReflection } from "../../gen/reflection_pb.ts";
import type { Settings } from "../config/config.ts";
import type { Pages } from "../edge/rest/pages.ts";
import type { Authenticate, Caller, IdentifyService, OnRefusedKey } from "../core/caller.ts";
import type { Clock } from "../core/clock.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { NativePrefix } from "../core/native-prefix.ts";
import { serve, type Service } from "../core/contract-rules.ts";
import { BodyBudget } from "../edge/bodies/body-budget.ts";
import { createFacade } from "../edge/rest/facade.ts";
import type { CallbackReceiver, DirectHandlers, FindFile } from "../edge/rest/options.ts";
import type { RunningCalls } from "../calls/running-calls.ts";
import type { RequestLog } from "../edge/request-log.ts";
import { createAccessCheck } from "../edge/rpc/access.ts";
import { createDirectTransport } from "../edge/rpc/direct-transport.ts";
import { createCallFiles } from "../edge/rpc/call-files.ts";
import { createKeyGate, createOperatorGate, createSessionGate } from "../edge/rpc/gate.ts";
import {
  createHealthService,
  createReflectionService,
  ServerReflectionAlpha,
} from "../edge/rpc/standard-services.ts";
import {
  cancelOnDisconnect,
  createAccess,
  createClocked,
  createErrorMapping,
  requestId,
} from "../edge/rpc/interceptors.ts";
import { registerConsole } from "./console-scope.ts";
import { type Edges, Listeners } from "./listeners.ts";
import { createOperatorPages, createSocketPages } from "./operator-pages.ts";
import { registerRpcs } from "./public-rpcs.ts";

/** Options of {@link createEdges}. */
export interface EdgeOptions {
  readonly settings: Settings;
  readonly clock: Clock;
  readonly log: Logger;
  /** Logs requests without a call record. */
  readonly requests: RequestLog;
  readonly metrics: Metrics;
  readonly calls: RunningCalls;
  readonly services: readonly Service[];
  /** Handlers of model calls, which REST routes call directly. */
  readonly direct: DirectHandlers;
  readonly authenticate: Authenticate;
  /** Identifies the owner of a session cookie. */
  readonly identify: (token: string) => Promise<Caller>;
  /** Called for recognised keys that are disabled, deleted or expired. */
  readonly onRefusedKey: OnRefusedKey;
  /** Why calls cannot be served; `undefined` if they can. Never contacts a vendor. */
  readonly whyNotReady: () => Promise<string | undefined>;
  /** Checks service credentials. By default none is accepted. */
  readonly identifyService?: IdentifyService | undefined;
  /** Finds result files by token. */
  readonly findFile: FindFile;
  /** Receives vendors' callbacks about tasks. */
  readonly callbacks: CallbackReceiver;
  /** Native vendor APIs to serve. */
  readonly nativePrefixes: () => readonly NativePrefix[];
  /** Returns the origins whose pages may call. None by default. */
  readonly corsOrigins?: (() => readonly string[] | undefined) | undefined;
  /** The console's pages; resolves to undefined if they cannot be served. No console by default. */
  readonly pages?: Promise<Pages | undefined> | undefined;
  /** Renders the metrics of all workers. By default the metrics of this process, the only one. */
  readonly readMetrics?: (() => Promise<string>) | undefined;
  /** The path of the socket of the command line. None by default. */
  readonly operatorSocket?: string | undefined;
}

/** Creates the listeners; they do not listen yet. */
export async function createEdges(options: EdgeOptions): Promise<Edges> {
  const { settings, log, metrics, calls, services, clock, authenticate, onRefusedKey } = options;
  const { publicUrl, consoleUrl } = settings;
  const isOpen = (): boolean => calls.isOpen;
  const listeners = new Listeners({ settings, calls });
  const whyNotReady = async (): Promise<string | undefined> =>
    listeners.isStopping ? "the gateway is stopping" : options.whyNotReady();

  const descriptions = services.map(({ service }) => service);
  const standard = standardServices(descriptions, whyNotReady);
  const checkAccess = createAccessCheck(
    descriptions,
    standard.map(({ service }) => service),
  );
  const interceptors: Interceptor[] = [
    requestId,
    createErrorMapping(log),
    createClocked(clock),
    createAccess(checkAccess),
  ];
  const bodies = createBodies(metrics);

  const transport = createDirectTransport(services, interceptors);
  const facade = await createFacade({
    services: descriptions,
    transport,
    direct: options.direct,
    authenticate,
    onRefusedKey,
    metrics,
    log,
    requests: options.requests,
    isOpen,
    requireCapacity: () => calls.requireCapacity(),
    bodies,
    draining: listeners.draining,
    stopping: listeners.stopping,
    whyNotReady,
    findFile: options.findFile,
    callbacks: options.callbacks,
    natives: options.nativePrefixes,
    // The console's pages call the API with a separate key.
    corsOrigins: () => [
      ...(options.corsOrigins?.() ?? []),
      ...(consoleUrl === undefined ? [] : [consoleUrl]),
    ],
    trustProxy: settings.trustProxy,
    publicUrl,
    consoleUrl,
  });

  const rpcs = {
    services,
    interceptors: [cancelOnDisconnect, ...interceptors],
    bodies,
    shutdownSignal: listeners.stopping,
  };
  registerRpcs(facade, {
    ...rpcs,
    requestGate: createKeyGate({
      authenticate,
      onRefusedKey,
      checkAccess,
      log,
      operatorTokens: [],
      isCompressionAllowed: false,
    }),
    grpc: false,
  });
  await registerConsole(facade, {
    rpcs,
    requestGate: createSessionGate({
      identify: options.identify,
      checkAccess,
      log,
      isCompressionAllowed: false,
    }),
    isOpen,
    ownUrl: consoleUrl ?? publicUrl,
    apiOrigin: () => (consoleUrl === undefined ? "" : (publicUrl ?? listeners.publicUrl)),
    pages: options.pages,
  });

  const keyGate = createKeyGate({
    authenticate,
    onRefusedKey,
    checkAccess,
    log,
    operatorTokens: tokensOf(settings.operatorToken),
    identifyService: options.identifyService,
    isCompressionAllowed: true,
  });
  const internal = {
    ...rpcs,
    services: [...services, ...standard],
    requestGate: keyGate,
    file: createCallFiles({ transport, requestGate: keyGate }),
    page: createOperatorPages({ metrics, whyNotReady, readMetrics: options.readMetrics }),
  };
  const operator = {
    ...internal,
    requestGate: createOperatorGate({ checkAccess, log, isCompressionAllowed: true }),
    page: createSocketPages(settings, () => listeners.publicUrl),
  };
  const path = options.operatorSocket;
  listeners.serve({
    facade,
    internal,
    operator: path === undefined ? undefined : { ...operator, path },
  });
  return listeners;
}

/** The budget of request bodies, over all listeners of the process. */
function createBodies(metrics: Metrics): BodyBudget {
  const bodies = new BodyBudget(() => metrics.limitRefusals.inc({ limit: "unfinished_bodies" }));
  metrics.gauge("uas_unfinished_body_bytes", () => bodies.bytes);
  return bodies;
}

/** The services outside the contract that gRPC clients expect. */
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
