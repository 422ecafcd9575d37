/**
 * The REST surface. Each dialect has a Fastify scope, so that malformed JSON, 401, 404, 405, 413 and 415 are
 * reported in that dialect without further branches. Each `route` option of the contract becomes one route.
 */
import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { Dialect } from "../../gen/uas/http/v1/http_pb.ts";
import { headerBytesMax } from "../config/limits.ts";
import { gatewayStopping } from "../core/caller.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { type DialectId, dialects } from "../dialect/index.ts";
import { createDirectDeps, DirectPaths, registerDirect } from "./direct-route.ts";
import { ConsoleHost } from "./console-host.ts";
import { noSuchPath, sendError, toGatewayError } from "./errors.ts";
import { registerFiles } from "./files.ts";
import { clientErrorHandler, createHttpServer } from "./http-server.ts";
import { registerNative } from "./native-scope.ts";
import { documented, registerDocuments } from "./openapi.ts";
import type { FacadeOptions } from "./options.ts";
import { type RestRoute, routeTable } from "./route-table.ts";
import { echoRequestId, notAllowed, prepareScope, readWith, registerScope } from "./scope.ts";
import { WebSockets } from "./web-socket/upgrade.ts";
import { sentOf, whenHeaderStrategy } from "./when-header.ts";

/** Creates the server; it does not listen yet. */
export async function createFacade(options: FacadeOptions): Promise<FastifyInstance> {
  const table = routeTable(options.services);
  const routes = table.filter(({ route }) => !route.webSocket);
  const sockets = new WebSockets(table, options);
  const styleOf = createStyleOf(routes);
  const deps = createDirectDeps(options);
  const paths = new DirectPaths(deps);
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
    // As long as a head may be: a name that is too long is no malformed request, but one that nothing has.
    routerOptions: { maxParamLength: headerBytesMax },
    trustProxy: options.trustProxy.length > 0 ? [...options.trustProxy] : false,
    clientErrorHandler,
    frameworkErrors: (error, request, reply) =>
      void sendError(reply, styleOf(request.headers), toGatewayError(error)),
  });
  app.addHook("preClose", () => sockets.close());
  const fixed = documented(table).filter(({ url }) => !/[:*]/.test(url));
  const fixedPaths = [...new Set(fixed.map(({ url }) => url))];
  const refusePath = (request: FastifyRequest, reply: FastifyReply): FastifyReply =>
    sendError(reply, styleOf(request.headers), noSuchPath(request.method, request.url, fixedPaths));
  consoleHost?.separate(app, refusePath);
  registerCors(app, options.corsOrigins ?? []);
  // Bodies are read by routes that know their caller, and by nothing else.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, _body, done) => done(null));
  app.addConstraintStrategy(whenHeaderStrategy(routes));
  app.setNotFoundHandler(refusePath);
  registerProbes(app, options);
  registerDocuments(app, { routes: table, prefixes: options.natives.map(({ prefix }) => prefix) });
  for (const route of routes) {
    const handle = options.direct.wire.get(route.method);
    if (handle === undefined) continue;
    paths.add(route, registerDirect(app, route, { deps, handle }), routes);
  }
  for (const [dialect, own] of Map.groupBy(routes, (each) => each.dialect)) {
    await app.register((scope) => registerScope(scope, { ...options, dialect, routes: own }));
  }
  for (const native of options.natives) {
    await app.register((scope) => registerNative(scope, { ...options, native, deps, paths }));
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
function registerProbes(app: FastifyInstance, { whyNotReady, isOpen }: FacadeOptions): void {
  app.get("/healthz", (_request, reply) => reply.type("text/plain").send("ok\n"));
  app.get("/api/hello", (_request, reply) => reply.send({ message: "hello" }));
  app.get("/readyz", async (_request, reply) => {
    const reason = isOpen() ? await whyNotReady() : "the gateway is stopping";
    return reply
      .code(reason === undefined ? 200 : 503)
      .type("text/plain")
      .send(reason === undefined ? "ready\n" : `not ready: ${reason}\n`);
  });
}

// Lets pages of configured origins call the public listener (Fetch standard, CORS). Never with cookies, so that such a
// page has only what its API key allows.

/** How long browsers remember a preflight, in seconds: the most that Chrome takes. */
const maxAgeSeconds = 7_200;

/** The console's own pages have cookies: no other page calls below this path. */
const consolePath = /^\/console(?:\/|$|\?)/;

/**
 * Registers the headers for all routes that are registered afterwards.
 *
 * @param origins exact origins, or `*`. Empty: nothing is registered, and no request pays for it
 */
function registerCors(app: FastifyInstance, origins: readonly string[]): void {
  if (origins.length === 0) return;
  const isOpen = origins.includes("*");
  const known = new Set(origins);
  app.addHook("onRequest", (request, reply, done) => {
    const { method, headers } = request;
    const { origin } = headers;
    if (origin === undefined || consolePath.test(request.url)) return done();
    const { raw } = reply;
    if (!isOpen) raw.setHeader("vary", "origin");
    if (isOpen || known.has(origin)) {
      raw.setHeader("access-control-allow-origin", isOpen ? "*" : origin);
      raw.setHeader("access-control-expose-headers", "*");
      if (method === "OPTIONS" && isPreflight(headers)) {
        reply.hijack();
        return answerPreflight(headers, raw);
      }
    }
    return done();
  });
}

function isPreflight(headers: IncomingHttpHeaders): boolean {
  return headers["access-control-request-method"] !== undefined;
}

/** Every method and header is allowed: the request itself is checked as any other. */
function answerPreflight(headers: IncomingHttpHeaders, response: ServerResponse): void {
  const { "access-control-request-method": method = "", "access-control-request-headers": names } =
    headers;
  response.writeHead(204, {
    "access-control-allow-methods": method,
    ...(names !== undefined && { "access-control-allow-headers": names }),
    "access-control-max-age": String(maxAgeSeconds),
  });
  response.end();
}

// `/callbacks/{token}`: receives vendors' callbacks about tasks. The token is the credential, so no API key is
// needed and the token is never logged. The content is not trusted: a callback only triggers a poll of the vendor.

const url = "/callbacks/:token";
const method = "POST";

/** Registers the callback route in its own scope. */
async function registerCallbacks(
  scope: FastifyInstance,
  { callbacks, ...options }: FacadeOptions,
): Promise<void> {
  prepareScope(scope, { ...options, dialect: Dialect.PLATFORM });
  scope.addContentTypeParser("*", readWith(options.bodies));
  const idHeaders = dialects[Dialect.PLATFORM].requestIdHeaders;
  scope.route<{ Params: { token: string } }>({
    method,
    url,
    // Checked before the body is read, so that unknown senders cannot make the gateway read one.
    onRequest: async (request, reply) => {
      echoRequestId(request, reply, idHeaders);
      if (!options.isOpen()) {
        reply.header("connection", "close");
        throw gatewayStopping();
      }
      if (await callbacks?.isKnown(request.params.token)) return;
      reply.header("connection", "close");
      throw new GatewayError(ErrorCode.NOT_FOUND, "There is no such address for callbacks");
    },
    handler: async (request, reply) => {
      const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
      await callbacks?.take(request.params.token, body);
      return reply.send({ received: true });
    },
  });
  scope.route({
    method: scope.supportedMethods.filter((each) => each !== method),
    url,
    onRequest: async (request, reply) => {
      echoRequestId(request, reply, idHeaders);
      reply.header("allow", method);
      throw notAllowed(request.method, method);
    },
    handler: () => undefined,
  });
}
