/** The built pages as the server hands them out: R-CON-1. */
import { statSync } from "node:fs";
import { gzipSync, gunzipSync } from "node:zlib";
import { fastify, type FastifyInstance } from "fastify";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildPages, readPages } from "../../../src/app/built-pages.ts";
import { type Pages, registerPages } from "../../../src/edge/rest/pages.ts";

/** The most JavaScript that the first page may load, compressed. */
const initialBytesMax = 260 * 1024;

let pages: Pages;
let app: FastifyInstance;

beforeAll(async () => {
  pages = await readPages(await buildPages());
  app = await serving(Promise.resolve(pages));
}, 60_000);

afterAll(() => app.close());

async function serving(served: Promise<Pages | undefined>): Promise<FastifyInstance> {
  const server = fastify();
  await server.register((scope) => registerPages(scope, served));
  return server;
}

function bytesOf(path: string): Buffer {
  const file = pages.get(path);
  if (file === undefined) throw new Error(`no file ${path}`);
  return file.bytes;
}

const index = (): string => bytesOf("index.html").toString();

/** The scripts that the document asks for itself: the entry, and what it imports. */
function initialScripts(): string[] {
  return [...index().matchAll(/(?:src|href)="\/console\/(assets\/[^"]+\.js)"/g)].map(
    ([, path = ""]) => path,
  );
}

test("the first page loads at most 260 KB of JavaScript, and no charts", () => {
  const scripts = initialScripts();
  const bytes = scripts.reduce((sum, path) => sum + gzipSync(bytesOf(path)).length, 0);
  expect(scripts.length).toBeGreaterThan(0);
  expect(bytes).toBeLessThan(initialBytesMax);
  expect(scripts.filter((path) => bytesOf(path).includes("recharts"))).toEqual([]);
});

test("nothing in the document is inline", () => {
  expect(index()).not.toMatch(/<style|\sstyle=|\son[a-z]+=|<script(?![^>]*\ssrc=)/);
});

test("every page is the document, fresh each time, and never in a frame", async () => {
  for (const url of ["/console", "/console/", "/console/keys", "/console/keys/any/thing?a=1"]) {
    const reply = await app.inject({ url });
    expect([url, reply.statusCode, reply.body]).toEqual([url, 200, index()]);
    expect(reply.headers["cache-control"]).toBe("no-store");
    const policy = String(reply.headers["content-security-policy"]);
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toMatch(/unsafe|https?:|\*/);
  }
});

test("a browser that opens the address itself gets to the console, other clients do not", async () => {
  const browser = await app.inject({ url: "/", headers: { accept: "text/html,*/*;q=0.8" } });
  expect([browser.statusCode, browser.headers.location]).toEqual([302, "/console"]);
  expect((await app.inject({ url: "/", headers: { accept: "*/*" } })).statusCode).toBe(404);
});

test("browsers that ask for the icon unasked get that of the pages", async () => {
  const icon = await app.inject({ url: "/favicon.ico" });
  expect([icon.statusCode, icon.headers["content-type"]]).toEqual([200, "image/svg+xml"]);
  expect(icon.body).toContain("<svg");
});

test("files with a hash in their name are cached indefinitely, and compressed for clients that accept it", async () => {
  const [path = ""] = initialScripts();
  const url = `/console/${path}`;
  const plain = await app.inject({ url });
  expect(plain.headers["cache-control"]).toBe("public, max-age=31536000, immutable");
  expect(plain.headers["content-type"]).toContain("javascript");
  expect(plain.rawPayload).toEqual(bytesOf(path));
  const zipped = await app.inject({ url, headers: { "accept-encoding": "br, gzip" } });
  expect(zipped.headers["content-encoding"]).toBe("gzip");
  expect(gunzipSync(zipped.rawPayload)).toEqual(bytesOf(path));
});

test("a file that is not there is no page", async () => {
  const reply = await app.inject({ url: "/console/assets/nothing-12345678.js" });
  expect([reply.statusCode, reply.headers["cache-control"]]).toEqual([404, "no-store"]);
});

test("paths that lead out of the folder lead nowhere", async () => {
  for (const url of ["/console/..%2f..%2fpackage.json", "/console/assets/..%2f..%2fpackage.json"]) {
    const reply = await app.inject({ url });
    expect(reply.body).not.toContain("uas-gateway");
  }
});

test("where the pages could not be built, the console says what to do", async () => {
  const broken = await serving(Promise.resolve(undefined));
  const reply = await broken.inject({ url: "/console" });
  await broken.close();
  expect(reply.statusCode).toBe(503);
  expect(reply.body).toContain("npm run console");
});

test("what is built once is not built again", async () => {
  const folder = await buildPages();
  // A build with this signal would fail.
  expect(await buildPages(AbortSignal.abort())).toBe(folder);
});

test("the pages of a console with its own host know the origin of the API, and may call nothing else", async () => {
  const api = "https://ai.example";
  const server = fastify();
  await server.register((scope) => registerPages(scope, Promise.resolve(pages), () => api));
  const reply = await server.inject({ url: "/console", headers: { "accept-encoding": "gzip" } });
  await server.close();
  expect(reply.body).toContain(`<head><meta name="api-origin" content="${api}">`);
  const policy = String(reply.headers["content-security-policy"]);
  expect(policy).toContain(`connect-src 'self' ${api};`);
  expect(policy).toContain("script-src 'self';");
});

test.skipIf(process.platform === "win32")(
  "pages that one user builds can be read by the user of the service",
  async () => {
    expect(statSync(await buildPages()).mode & 0o055).toBe(0o055 & ~process.umask());
  },
);
