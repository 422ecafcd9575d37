/** `cors:` lets pages of the configured origins call, without cookies. */
import { describe, expect, it } from "vitest";
import { send } from "../../support/raw-http.ts";
import { ask, useGateway } from "../harness.ts";

const origin = "https://app.example";
const other = { origin: "https://evil.example" };
const fixture = useGateway(() => ({ cors: { origins: [origin] } }));

const preflight = (path: string, from = origin) =>
  send(`${fixture.gateway.url}${path}`, {
    method: "OPTIONS",
    headers: {
      origin: from,
      "access-control-request-method": "POST",
      "access-control-request-headers": "authorization,content-type,x-stainless-lang",
    },
  });

describe("a page of a configured origin", () => {
  it.each(["/v1/chat/completions", "/v1/models", "/api/ai/tasks/x/cancel", "/nothing/here"])(
    "gets its preflight to %s answered without a key",
    async (path) => {
      const reply = await preflight(path);
      expect([reply.status, reply.body.length]).toEqual([204, 0]);
      expect(reply.headers).toMatchObject({
        "access-control-allow-origin": origin,
        "access-control-allow-methods": "POST",
        "access-control-allow-headers": "authorization,content-type,x-stainless-lang",
        vary: "origin",
      });
      expect(reply.headers).not.toHaveProperty("access-control-allow-credentials");
    },
  );

  it("a page of a configured origin reads replies, streams and errors with all their headers", async () => {
    const replies = [
      await fixture.chat(ask, { origin }),
      await fixture.chat({ ...ask, stream: true }, { origin }),
      await fixture.chat({ ...ask, model: "none" }, { origin }),
      await fixture.send("/v1/models", { method: "GET", headers: { origin } }),
      await fixture.send("/v1/models", { method: "GET", headers: { origin, authorization: "" } }),
    ];
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 404, 200, 401]);
    for (const { headers } of replies) {
      expect(headers["access-control-allow-origin"]).toBe(origin);
      expect(headers["access-control-expose-headers"]).toBe("*");
    }
  });
});

describe("other callers get no such headers:", () => {
  const allowed = (headers: object) =>
    Object.keys(headers).filter((name) => name.startsWith("access-control-"));

  it("pages of other origins get no CORS headers", async () => {
    const refused = await preflight("/v1/chat/completions", other.origin);
    expect([refused.status, allowed(refused.headers)]).toEqual([405, []]);
    const reply = await fixture.chat(ask, other);
    expect([reply.status, allowed(reply.headers)]).toEqual([200, []]);
    expect(reply.headers["vary"]).toBe("origin");
  });

  it("requests without an origin get no CORS headers", async () => {
    const reply = await fixture.chat(ask);
    expect([allowed(reply.headers), reply.headers["vary"]]).toEqual([[], undefined]);
  });

  it("the console, whose pages have cookies", async () => {
    for (const path of ["/console", "/console/rpc/uas.account.v1.AccountService/ListAccounts"]) {
      expect(allowed((await preflight(path)).headers)).toEqual([]);
    }
  });
});
