/**
 * R-ERR-1, R-ERR-7: a body that cannot be read as JSON in UTF-8 gets 415 in its style, on every
 * route with one.
 */
import { gzipSync } from "node:zlib";
import { expect, it } from "vitest";
import { ask, errorOf, json, publicModel, useGateway } from "../harness.ts";

const fixture = useGateway();

const bodies: Readonly<Record<string, object>> = {
  "/v1/chat/completions": ask,
  "/api/ai/generate": ask,
  "/v1/responses": { model: publicModel, input: "Hello" },
  "/v1/embeddings": { model: publicModel, input: "Hello" },
  "/api/ai/tasks": { model: publicModel, params: {} },
  "/v1/messages": { ...ask, max_tokens: 16 },
  "/v1/messages/count_tokens": ask,
};

it.each(Object.entries(bodies))("an encoded body is refused with 415: %s", async (path, body) => {
  const forms = [
    [{ "content-encoding": "gzip" }, gzipSync(JSON.stringify(body))],
    [
      { "content-type": "application/json; charset=utf-16" },
      Buffer.from(JSON.stringify(body), "utf16le"),
    ],
  ] as const;
  for (const [headers, sent] of forms) {
    const reply = await fixture.send(path, { headers, body: sent });
    expect(reply.status).toBe(415);
    const isMessages = path.startsWith("/v1/messages");
    const said = expect.stringMatching(/content-encoding|UTF-8/);
    expect(json(reply)).toMatchObject(
      isMessages
        ? { type: "error", error: { type: "invalid_request_error", message: said } }
        : {
            error: { type: "invalid_request_error", code: "unsupported_media_type", message: said },
          },
    );
  }
  expect(fixture.upstream.requests).toHaveLength(0);
});

it.each([
  [{ "content-encoding": "br" }, /must not be compressed/],
  [{ "content-encoding": "GZIP, identity" }, /must not be compressed/],
  [{ "content-type": 'application/json; a=b; CHARSET="ISO-8859-1"' }, /JSON in UTF-8/],
])("415: what a plain body says of itself counts: %j", async (headers, says) => {
  const reply = await fixture.chat(ask, headers);
  expect(reply.status).toBe(415);
  expect(errorOf(reply)["message"]).toMatch(says);
});
