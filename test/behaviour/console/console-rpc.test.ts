/** The edge of the console: who is let in at all, and the cookie. */
import { createClient } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { UserService } from "../../../gen/uas/account/v1/user_service_pb.ts";
import { openBrowser } from "../../unit/account/browser.ts";
import { type Customer, type Gateway, startGateway } from "../../support/gateway.ts";
import { send } from "../../support/raw-http.ts";

let gateway: Gateway;
let customer: Customer;
let cookie: string;
let host: string;

const publicUrl = "https://ai.example";
const vendors = { demo: { kind: "demo", baseUrl: "" } };
const whoAmI = "/uas.account.v1.SessionService/GetSession";
const json = { "content-type": "application/json" };

beforeAll(async () => {
  gateway = await startGateway({ vendors, settings: { trustProxy: ["127.0.0.1"] } });
  customer = await gateway.customer();
  host = new URL(gateway.url).host;
  const browser = openBrowser(gateway.url);
  await browser.session.signInWithLink({ token: await newLink(gateway) });
  cookie = browser.cookie ?? "";
});
afterAll(() => gateway?.close());

async function newLink({ app }: Gateway): Promise<string> {
  return (await createClient(UserService, app.transport).createSignInLink({})).token;
}

/** Asks who is signed in. */
async function ask(headers: Readonly<Record<string, string>>, url = gateway.url) {
  const request = { method: "POST", headers: { ...json, ...headers }, body: "{}" };
  return send(`${url}/console/rpc${whoAmI}`, request);
}

describe("calls of other sites", () => {
  it.each([
    { "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "same-site" },
    { "sec-fetch-site": "none" },
    // The browser's statement about the site precedes the origin.
    { "sec-fetch-site": "cross-site", origin: "own" },
    { origin: "https://evil.example" },
    { origin: "null" },
    { origin: "http://127.0.0.1:1" },
    {},
  ] as Readonly<Record<string, string>>[])(
    "calls of other sites are turned away: %o",
    async (headers) => {
      const origin = headers["origin"] === "own" ? { origin: `http://${host}` } : {};
      const reply = await ask({ cookie, ...headers, ...origin });
      expect(reply.status).toBe(403);
      expect(JSON.parse(String(reply.body))).toMatchObject({ code: "permission_denied" });
      expect(reply.headers["set-cookie"]).toBeUndefined();
      expect(reply.headers["cache-control"]).toBe("no-store");
    },
  );

  it("calls from other sites are distinguished from those of the console's pages", async () => {
    for (const own of [{ "sec-fetch-site": "same-origin" }, { origin: `http://${host}` }]) {
      expect((await ask({ cookie, ...own })).status).toBe(200);
    }
  });

  it("other sites may read only what needs no credential", async () => {
    const query = "?encoding=json&message=%7B%7D";
    const url = `${gateway.url}/console/rpc${whoAmI}${query}`;
    expect((await send(url, { method: "GET", headers: { cookie } })).status).toBe(200);
    const foreign = { cookie, "sec-fetch-site": "cross-site" };
    expect((await send(url, { method: "GET", headers: foreign })).status).toBe(403);
  });
});

describe("credentials", () => {
  const own = { "sec-fetch-site": "same-origin" };

  it("keys count for nothing on the console", async () => {
    const { key } = customer;
    for (const headers of [{ authorization: `Bearer ${key}` }, { "x-api-key": key }]) {
      const reply = await ask({ ...own, ...headers });
      expect(reply.status).toBe(401);
      expect(String(reply.body)).toContain("Not signed in");
    }
  });

  it("the cookie counts for nothing elsewhere", async () => {
    const paths = ["/v1/models", `${whoAmI}?encoding=json&message=%7B%7D`];
    for (const path of paths) {
      const reply = await send(`${gateway.url}${path}`, { method: "GET", headers: { cookie } });
      expect(reply.status).toBe(401);
    }
  });

  it.each([
    "uas_console=",
    "uas_console=x",
    `uas_console=${"A".repeat(43)}`,
    "other=1",
    "=;;",
    "uas_console",
  ])("a cookie that is none is nobody: %s", async (wrong) => {
    expect((await ask({ ...own, cookie: wrong })).status).toBe(401);
  });
});

describe("the cookie", () => {
  it("the cookie is a plain one over http, and for the whole host only over https", async () => {
    const plain = openBrowser(gateway.url);
    await plain.session.signInWithLink({ token: await newLink(gateway) });
    expect(plain.setCookies).toEqual([
      expect.stringMatching(
        /^uas_console=[\w-]{43}; Max-Age=604800; Path=\/; HttpOnly; SameSite=Lax$/,
      ),
      expect.stringMatching(
        /^uas_browser=[\w.~-]+; Max-Age=31536000; Path=\/; HttpOnly; SameSite=Lax$/,
      ),
    ]);
    const behind = { "sec-fetch-site": "same-origin", "x-forwarded-proto": "https" };
    const secure = openBrowser(gateway.url, behind);
    await secure.session.signInWithLink({ token: await newLink(gateway) });
    expect(secure.setCookies).toEqual([
      expect.stringMatching(
        /^__Host-uas_console=[\w-]{43}; Max-Age=604800; Path=\/; HttpOnly; SameSite=Lax; Secure$/,
      ),
      expect.stringMatching(
        /^__Host-uas_browser=[\w.~-]+; Max-Age=31536000; Path=\/; HttpOnly; SameSite=Lax; Secure$/,
      ),
    ]);
    expect((await secure.session.getSession({})).session?.isCurrent).toBe(true);
  });

  it("the cookie follows UAS_PUBLIC_URL, as what counts as an own page does", async () => {
    const other = await startGateway({ vendors, settings: { publicUrl } });
    try {
      const browser = openBrowser(other.url, { origin: publicUrl });
      await browser.session.signInWithLink({ token: await newLink(other) });
      expect(browser.cookie).toMatch(/^__Host-uas_console=/);
      expect(
        (await ask({ cookie: browser.cookie ?? "", origin: "https://evil.example" }, other.url))
          .status,
      ).toBe(403);
    } finally {
      await other.close();
    }
  });
});
