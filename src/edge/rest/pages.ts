/**
 * Serves the built pages of the console under `/console` from memory: no request reads the disk.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";

/** One file of the built pages. */
export interface PageFile {
  readonly contentType: string;
  readonly bytes: Buffer;
  /** The compressed bytes; undefined if they are not smaller. */
  readonly gzip: Buffer | undefined;
}

/** The built pages: files by their path below `/console/`, `index.html` among them. */
export type Pages = ReadonlyMap<string, PageFile>;

/**
 * The sources that the pages may use. No inline scripts or styles, nothing from other origins, and
 * no frames of other sites. Images may be `blob:` addresses, for files that the user adds in the
 * playground. `api`: the origin of the API, whose replies and result files the pages show.
 */
function securityPolicy(api: string): string {
  const data = api === "" ? "'self'" : `'self' ${api}`;
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "font-src 'self'",
    `img-src ${data} data: blob:`,
    `media-src ${data} blob:`,
    `connect-src ${data}`,
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}

/** The other headers of every reply under `/console`. */
const headersAlways: Readonly<Record<string, string>> = {
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=()",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
};

/** Below this folder names carry a hash of the content. */
const hashedFolder = "assets/";

/**
 * Registers `/console` and everything below it in a separate scope. Requests wait until the pages
 * are built.
 *
 * @param pages resolves to undefined if they could not be built: requests then get a 503 that says
 * what to do
 * @param apiOrigin receives the origin of the API if it differs from the pages' origin. By default
 * they are equal
 */
export async function registerPages(
  scope: FastifyInstance,
  pages: Promise<Pages | undefined>,
  apiOrigin: () => string = () => "",
): Promise<void> {
  scope.addHook("onRequest", async (_request, reply) => {
    reply.headers({ ...headersAlways, "content-security-policy": securityPolicy(apiOrigin()) });
  });
  const handler = async (
    request: FastifyRequest<{ Params: { "*"?: string } }>,
    reply: FastifyReply,
  ): Promise<FastifyReply> => {
    const found = await pages;
    if (found === undefined) return sendMissing(reply);
    const path = request.params["*"] ?? "";
    const file = found.get(path);
    if (file !== undefined && path !== indexName) return sendFile(request, reply, { path, file });
    const index = found.get(indexName);
    if (path.startsWith(hashedFolder) || index === undefined) {
      return reply
        .code(404)
        .header("cache-control", "no-store")
        .type("text/plain")
        .send("not found\n");
    }
    // Every other path is a page: the router in the browser handles it.
    return sendFile(request, reply, { path: indexName, file: withApiOrigin(index, apiOrigin()) });
  };
  scope.get("/console", handler);
  scope.get("/console/*", handler);
  registerEntry(scope, pages);
}

/** The document, with the origin of the API in the element that `common/api.ts` reads. */
function withApiOrigin(index: PageFile, api: string): PageFile {
  if (api === "") return index;
  const meta = `<head><meta name="api-origin" content="${api}">`;
  const bytes = Buffer.from(index.bytes.toString().replace("<head>", meta));
  return { ...index, bytes, gzip: undefined };
}

/**
 * Registers the root address, which new users open, and the icon that browsers request
 * automatically.
 */
function registerEntry(scope: FastifyInstance, pages: Promise<Pages | undefined>): void {
  scope.get("/", ({ headers }, reply) => {
    if (!/\btext\/html\b/.test(headers.accept ?? "")) return reply.callNotFound();
    return reply.header("cache-control", "no-store").redirect("/console", 302);
  });
  scope.get("/favicon.ico", async (request, reply) => {
    const found = [...((await pages) ?? [])].find(([path]) => iconName.test(path));
    if (found === undefined) return reply.callNotFound();
    const [path, file] = found;
    return sendFile(request, reply, { path, file });
  });
}

/** The icon of the pages, with or without a hash in its name. */
const iconName = /^(?:assets\/)?icon(?:-[\w-]+)?\.svg$/;

const indexName = "index.html";

function sendFile(
  { headers }: FastifyRequest,
  reply: FastifyReply,
  { path, file }: { path: string; file: PageFile },
): FastifyReply {
  const isHashed = path.startsWith(hashedFolder);
  reply
    .type(file.contentType)
    .header("cache-control", isHashed ? "public, max-age=31536000, immutable" : "no-store")
    .header("vary", "accept-encoding");
  const takesGzip = /\bgzip\b/.test(headers["accept-encoding"] ?? "");
  if (!takesGzip || file.gzip === undefined) return reply.send(file.bytes);
  return reply.header("content-encoding", "gzip").send(file.gzip);
}

function sendMissing(reply: FastifyReply): FastifyReply {
  return reply
    .code(503)
    .header("cache-control", "no-store")
    .type("text/plain")
    .send(
      "The pages of the console are not built. Run `npm ci` (with development dependencies) and " +
        "`npm run console` in the gateway's folder, then start it again.\n",
    );
}
