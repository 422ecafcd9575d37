/** Replies that browsers show, store or run nothing of. */
import { createServer, type OutgoingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { InertReply, markOwnPage } from "../../../src/edge/inert-reply.ts";
import { send } from "../../support/raw-http.ts";

let answer: (response: ServerResponse) => void;
const server = createServer({ ServerResponse: InertReply }, (_request, response) =>
  answer(response),
);
let url: string;

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
});
afterAll(() => server.close());

async function headersOf(written: (response: ServerResponse) => void) {
  answer = written;
  return (await send(url, { method: "GET" })).headers;
}

const inert = {
  "x-content-type-options": "nosniff",
  "content-security-policy": "default-src 'none'; sandbox",
};

/** A body of a type. */
const typed = (type: string, more: OutgoingHttpHeaders = {}) =>
  headersOf((response) => response.writeHead(200, { "content-type": type, ...more }).end("x"));

describe("a reply", () => {
  test.for([
    "application/json",
    "application/json; charset=utf-8",
    "application/problem+json",
    "application/x-ndjson",
    "application/jsonl",
    "text/event-stream;charset=utf-8",
    "image/png",
    "IMAGE/JPEG",
    "audio/mpeg",
    'video/webm; codecs="vp9, opus"',
  ])("a reply of type %s is shown as it is", async (type) => {
    const headers = await typed(type);
    expect(headers).toMatchObject({ ...inert, "content-type": type });
    expect(headers).not.toHaveProperty("content-disposition");
  });

  test.for([
    "text/plain; charset=utf-8",
    "application/pdf",
    "application/proto",
    "text/vtt",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
  ])("a reply of type %s is stored under its type", async (type) => {
    const attached = { "content-type": type, "content-disposition": "attachment" };
    expect(await typed(type)).toMatchObject({ ...inert, ...attached });
  });

  test.for([
    "text/html",
    "Text/HTML; charset=utf-8",
    "application/xhtml+xml",
    "text/xml",
    "application/xml",
    "application/atom+xml",
    "image/svg+xml",
    "IMAGE/SVG+XML;x=y",
    "text/xsl",
    "text/javascript",
    "application/x-javascript",
    "text/jscript",
    "text/css",
    "multipart/x-mixed-replace; boundary=x",
    "multipart/related",
    "message/rfc822",
    "application/json, text/html",
    'application/json; x="\\", text/html',
    'application/json; x="a", text/html; y="b"',
    "nonsense",
    "",
  ])("a reply of type %o is stored as mere bytes", async (type) => {
    const opaque = { "content-type": "application/octet-stream" };
    expect(await typed(type)).toMatchObject({
      ...inert,
      ...opaque,
      "content-disposition": "attachment",
    });
  });

  test("a reply is inert however its head is written", async () => {
    const html = "text/html";
    const ways: ((response: ServerResponse) => void)[] = [
      (response) => response.writeHead(200, "OK", { "Content-Type": html }).end("x"),
      (response) => response.writeHead(200, ["content-type", html]).end("x"),
      (response) => response.setHeader("content-type", html).end("x"),
      (response) => response.setHeader("content-type", html).writeHead(200).end("x"),
      (response) => response.end("x"),
      (response) =>
        response
          .setHeader("Content-Security-Policy", "default-src *")
          .writeHead(200, { "X-Content-Type-Options": "none", "content-type": html })
          .end("x"),
      (response) => {
        response.setHeader("content-type", html);
        response.flushHeaders();
        response.end("x");
      },
    ];
    for (const write of ways) {
      expect(await headersOf(write)).toMatchObject({
        ...inert,
        "content-disposition": "attachment",
      });
    }
  });

  test("a reply keeps the name of its attachment, and is never shown inline against the rule", async () => {
    const named = 'attachment; filename="a.bin"';
    expect(await typed("text/html", { "content-disposition": named })).toMatchObject({
      "content-disposition": named,
    });
    for (const disposition of ["inline", "attachments", 'inline; filename="attachment"']) {
      expect(await typed("text/html", { "content-disposition": disposition })).toMatchObject({
        "content-disposition": "attachment",
      });
    }
  });

  test.for([204, 304])("a reply without content is no attachment: %i", async (status) => {
    const headers = await headersOf((response) => response.writeHead(status).end());
    expect(headers).toMatchObject(inert);
    expect(headers).not.toHaveProperty("content-disposition");
  });

  test("a page of the gateway itself keeps its headers", async () => {
    const headers = await headersOf((response) => {
      markOwnPage(response);
      response.writeHead(200, { "content-type": "text/html", "x-frame-options": "DENY" }).end();
    });
    expect(headers).toMatchObject({ "content-type": "text/html", "x-frame-options": "DENY" });
    expect(headers).not.toHaveProperty("content-security-policy");
  });
});
