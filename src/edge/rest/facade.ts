/**
 * The REST surface. Each dialect has a Fastify scope, so that malformed JSON, 401, 404, 405, 413
 * and 415 are reported in that dialect without further branches. Each `route` option of the
 * contract becomes one route.
 */
import type { IncomingHttpHeaders } from "node:http";
import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { headerBytesMax } from "../../core/limits.ts";
import type { DialectId } from "../../dialect/index.ts";
import { registerCallbacks } from "./callbacks.ts";
import { registerCors } from "./cors.ts";
import { registerDocuments } from "./documents.ts";
import { createDirectDeps, DirectPaths, registerDirect } from "./direct-route.ts";
import { ConsoleHost } from "./console-host.ts";
import { noSuchPath, sendError, toGatewayError } from "./errors.ts";
import { registerFiles } from "./files.ts";
import { clientErrorHandler, createHttpServer } from "./http-server.ts";
import { registerNatives, NativeRoutes } from "./native-scope.ts";
import type { FacadeOptions } from "./options.ts";
import { type RestRoute, routeTable } from "./route-table.ts";
import { registerScope } from "./scope.ts";
import { WebSockets } from "../websocket/upgrade.ts";
import { sentOf, whenHeaderStrategy } from "./when-header.ts";

/** Creates the server; it does not listen yet. */
export async function createFacade(options: FacadeOptions): Promise<FastifyInstance> {
  const table = routeTable(options.services);
  const routes = table.filter(({ route }) => !route.webSocket);
  const sockets = new WebSockets(table, options);
  const styleOf = createStyleOf(routes);
  const deps = createDirectDeps(options);
  const natives = new NativeRoutes(options);
  const paths = new DirectPaths(deps, natives);
  const { consoleUrl } = options;
  const consoleHost = consoleUrl === undefined ? undefined : new ConsoleHost(consoleUrl);
  const app = fastify({
    logger: false,
    serverFactory: (listener) => {
      const serve: typeof listener = (request, response) => {
        const isDirect = consoleHost?.mayBe(request) !== true && paths.serve(request, response);
        if (!isDirect) listener(request, response);
      };
      return createHttpServer(serve, consoleHost?.withoutUpgrades(sockets) ?? sockets, options);
    },
    return503OnClosing: false,
    // As long as a head may be: a name that is too long is not a malformed request, but a name that
    // does not exist.
    routerOptions: { maxParamLength: headerBytesMax },
    trustProxy: options.trustProxy.length > 0 ? [...options.trustProxy] : false,
    clientErrorHandler,
    frameworkErrors: (error, request, reply) =>
      void sendError(reply, styleOf(request.headers), toGatewayError(error)),
  });
  app.addHook("preClose", () => sockets.close());
  const fixed = table.filter(({ url }) => !/[:*]/.test(url) && !url.startsWith("/v1/v1/"));
  const fixedPaths = [...new Set(fixed.map(({ url }) => url))];
  const refusePath = (request: FastifyRequest, reply: FastifyReply): FastifyReply =>
    sendError(reply, styleOf(request.headers), noSuchPath(request.method, request.url, fixedPaths));
  consoleHost?.separate(app, refusePath);
  registerCors(app, options.corsOrigins ?? (() => []));
  registerNatives(app, natives, deps);
  // Only routes read bodies, once they have identified the caller.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, _body, done) => done(null));
  app.addConstraintStrategy(whenHeaderStrategy(routes));
  app.setNotFoundHandler(refusePath);
  registerProbes(app, options);
  registerDocuments(app, () => options.natives().map(({ prefix }) => prefix));
  for (const route of routes) {
    const handle = options.direct.wire.get(route.method);
    if (handle === undefined) continue;
    paths.add(route, registerDirect(app, route, { deps, handle }), routes);
  }
  for (const [dialect, own] of Map.groupBy(routes, (each) => each.dialect)) {
    await app.register((scope) => registerScope(scope, { ...options, dialect, routes: own }));
  }
  await app.register((scope) => registerFiles(scope, options));
  await app.register((scope) => registerCallbacks(scope, options));
  return app;
}

/** The dialect of errors if no route determines one. */
const fallbackDialect = Dialect.CHAT_COMPLETIONS;

/** Picks the dialect of a 404: the dialect of the routes that the request's headers select. */
function createStyleOf(routes: readonly RestRoute[]): (headers: IncomingHttpHeaders) => DialectId {
  const chosen = new Map(routes.map(({ whenHeader = "", dialect }) => [whenHeader, dialect]));
  chosen.delete("");
  const headerNames = [...chosen.keys()];
  return (headers) => chosen.get(sentOf(headerNames, headers) ?? "") ?? fallbackDialect;
}

/**
 * Registers probes, which need no key. `/healthz`: the process responds. `/readyz`: calls can be
 * served. `/api/hello`: Claude Code checks it before its first call.
 */
function registerProbes(app: FastifyInstance, { whyNotReady }: FacadeOptions): void {
  app.get("/healthz", (_request, reply) => reply.type("text/plain").send("ok\n"));
  app.get("/api/hello", (_request, reply) => reply.send({ message: "hello" }));
  app.get("/readyz", async (_request, reply) => {
    const reason = await whyNotReady();
    return reply
      .code(reason === undefined ? 200 : 503)
      .type("text/plain")
      .send(reason === undefined ? "ready\n" : `not ready: ${reason}\n`);
  });
}
