/**
 * A browser of the console: keeps its cookies, says where its requests come from, speaks Connect.
 */
import { type Client, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import type { DescService } from "@bufbuild/protobuf";
import type { Pool } from "pg";
import type { CodeAction } from "../../../gen/uas/account/v1/session_pb.ts";
import { SessionService } from "../../../gen/uas/account/v1/session_service_pb.ts";
import { UserService } from "../../../gen/uas/account/v1/user_service_pb.ts";

import { fromRpcError, type GatewayError } from "../../../src/core/errors.ts";

/** One browser. */
export interface Browser {
  readonly session: Client<typeof SessionService>;
  readonly users: Client<typeof UserService>;
  /** Another service of the contract, with this browser's cookie. */
  client<S extends DescService>(service: S): Client<S>;
  /** The cookie of the session, as it would be sent: `name=value`. Undefined if there is none. */
  cookie: string | undefined;
  /** The cookie by which the browser is known after it has signed in, as it would be sent. */
  known: string | undefined;
  /** Every `set-cookie` so far. */
  readonly setCookies: readonly string[];
}

/**
 * Opens one. @param headers what it sends beside its cookie. Default: as a page of the gateway
 * itself
 */
export function openBrowser(
  url: string,
  headers: Readonly<Record<string, string>> = { "sec-fetch-site": "same-origin" },
): Browser {
  const setCookies: string[] = [];
  const keepCookies: Interceptor = (next) => async (request) => {
    for (const [name, value] of Object.entries(headers)) request.header.set(name, value);
    const cookies = [browser.cookie, browser.known].filter((each) => each !== undefined);
    if (cookies.length > 0) request.header.set("cookie", cookies.join("; "));
    const response = await next(request);
    for (const line of response.header.getSetCookie()) {
      setCookies.push(line);
      const [pair = ""] = line.split(";");
      if (/^(__Host-)?uas_browser=/.test(pair)) browser.known = pair;
      else browser.cookie = /Max-Age=0(;|$)/.test(line) ? undefined : pair;
    }
    return response;
  };
  const transport = createConnectTransport({
    baseUrl: `${url}/console/rpc`,
    httpVersion: "1.1",
    useBinaryFormat: false,
    interceptors: [keepCookies],
    nodeOptions: { agent: false },
  });
  const browser: Browser = {
    session: createClient(SessionService, transport),
    users: createClient(UserService, transport),
    client: (service) => createClient(service, transport),
    cookie: undefined,
    known: undefined,
    setCookies,
  };
  return browser;
}

/** Returns the failure of a call. */
export async function failureOf(call: Promise<unknown>): Promise<GatewayError> {
  try {
    await call;
  } catch (error) {
    return fromRpcError(ConnectError.from(error));
  }
  throw new Error("it did not fail");
}

/** Numbers that no other test of a file uses. */
export function createPhones(): () => string {
  let last = 13_800_138_000;
  return () => {
    last += 1;
    return `+86${last}`;
  };
}

/** Signs a browser in with a code. */
export async function signInWithCode(browser: Browser, phone: string) {
  const { sent } = await browser.session.sendSignInCode({ phone });
  return browser.session.signInWithCode({ phone, code: sent?.developmentCode ?? "" });
}

/** Asks for a code and takes it from where development shows it. */
export async function actionCode(
  browser: Browser,
  action: CodeAction,
  subjectId = "",
): Promise<string> {
  const { sent } = await browser.session.sendActionCode({ action, subjectId });
  return sent?.developmentCode ?? "";
}

/** Lets a minute pass for all codes, and an hour for their addresses: every test comes from one. */
export async function letMinutePass(pool: Pool): Promise<void> {
  await pool.query(
    "update one_time_code set create_time = create_time - interval '61 s', ip_address = ''",
  );
}
