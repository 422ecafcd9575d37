/**
 * The REST surface. Each dialect has a Fastify scope, so that malformed JSON, 401, 404, 405, 413 and 415 are
 * reported in that dialect without further branches. Each `route` option of the contract becomes one route.
 */
import type { IncomingHttpHeaders } from "node:http";
import { fastify, type FastifyInstance } from "fastify";
import { Dialect } from "../../gen/uas/http/v1/http_pb.ts";
import type { DialectId } from "../dialect/index.ts";
import { registerCallbacks } from "./callbacks.ts";
import { registerCors } from "./cors.ts";
import { createDirectDeps, registerDirect } from "./direct-route.ts";
import { noSuchPath, sendError, toGatewayError } from "./errors.ts";
import { registerFiles } from "./files.ts";
import { clientErrorHandler, createHttpServer } from "./http-server.ts";
import { registerNative } from "./native-scope.ts";
import { registerDocuments } from "./openapi.ts";
import type { FacadeOptions } from "./options.ts";
import { type RestRoute, routeTable } from "./route-table.ts";
import { registerScope } from "./scope.ts";
import { sentOf, whenHeaderStrategy } from "./when-header.ts";

/** Creates the server; it does not listen yet. */
export async function createFacade(options: FacadeOptions): Promise<FastifyInstance> {
  const routes = routeTable(options.services);
  const styleOf = createStyleOf(routes);
  const app = fastify({
    logger: false,
    serverFactory: (listener) => createHttpServer(listener, options.publicUrl),
    return503OnClosing: false,
    trustProxy: options.trustProxy.length > 0 ? [...options.trustProxy] : false,
    clientErrorHandler,
    frameworkErrors: (error, request, reply) =>
      void sendError(reply, styleOf(request.headers), toGatewayError(error)),
  });
  registerCors(app, options.corsOrigins ?? []);
  // Bodies are read by routes that know their caller, and by nothing else.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, _body, done) => done(null));
  app.addConstraintStrategy(whenHeaderStrategy(routes));
  app.setNotFoundHandler((request, reply) =>
    sendError(reply, styleOf(request.headers), noSuchPath(request.method, request.url)),
  );
  registerProbes(app, options);
  registerDocuments(app, { routes, prefixes: options.natives.map(({ prefix }) => prefix) });
  const deps = createDirectDeps(options);
  for (const route of routes) {
    const handle = options.direct.wire.get(route.method);
    if (handle !== undefined) registerDirect(app, route, { deps, handle });
  }
  for (const [dialect, own] of Map.groupBy(routes, (each) => each.dialect)) {
    await app.register((scope) => registerScope(scope, { ...options, dialect, routes: own }));
  }
  for (const native of options.natives) {
    await app.register((scope) => registerNative(scope, { ...options, native, deps }));
  }
  await app.register((scope) => registerFiles(scope, options));
  await app.register((scope) => registerCallbacks(scope, options));
  return app;
}

/** The dialect of errors where no route determines one. */
const fallbackDialect = Dialect.CHAT_COMPLETIONS;

/** Picks the dialect of a 404: that of the routes selected by the request's headers. */
function createStyleOf(routes: readonly RestRoute[]): (headers: IncomingHttpHeaders) => DialectId {
  const chosen = new Map(routes.map(({ whenHeader = "", dialect }) => [whenHeader, dialect]));
  chosen.delete("");
  const headerNames = [...chosen.keys()];
  return (headers) => chosen.get(sentOf(headerNames, headers) ?? "") ?? fallbackDialect;
}

/**
 * Registers probes, which need no key. `/healthz`: the process responds. `/readyz`: calls can be served.
 * `/api/hello`: Claude Code checks it before its first call.
 */
function registerProbes(app: FastifyInstance, { isReady, isOpen }: FacadeOptions): void {
  app.get("/healthz", (_request, reply) => reply.type("text/plain").send("ok\n"));
  app.get("/api/hello", (_request, reply) => reply.send({ message: "hello" }));
  app.get("/readyz", async (_request, reply) => {
    const ready = isOpen() && (await isReady());
    return reply
      .code(ready ? 200 : 503)
      .type("text/plain")
      .send(ready ? "ready\n" : "not ready\n");
  });
}
