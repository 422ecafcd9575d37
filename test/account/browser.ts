/** A browser of the console: keeps one cookie, says where its requests come from, speaks Connect. */
import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import type { DescService } from "@bufbuild/protobuf";
import { SessionService } from "../../gen/uas/account/v1/session_service_pb.ts";
import { UserService } from "../../gen/uas/account/v1/user_service_pb.ts";

/** One browser. */
export interface Browser {
  readonly session: Client<typeof SessionService>;
  readonly users: Client<typeof UserService>;
  /** Another service of the contract, with this browser's cookie. */
  client<S extends DescService>(service: S): Client<S>;
  /** The cookie, as it would be sent: `name=value`. `undefined`: none. */
  cookie: string | undefined;
  /** Every `set-cookie` so far. */
  readonly setCookies: readonly string[];
}

/** Opens one. @param headers what it sends beside its cookie. Default: as a page of the gateway itself */
export function openBrowser(
  url: string,
  headers: Readonly<Record<string, string>> = { "sec-fetch-site": "same-origin" },
): Browser {
  const setCookies: string[] = [];
  const keepCookies: Interceptor = (next) => async (request) => {
    for (const [name, value] of Object.entries(headers)) request.header.set(name, value);
    if (browser.cookie !== undefined) request.header.set("cookie", browser.cookie);
    const response = await next(request);
    for (const line of response.header.getSetCookie()) {
      setCookies.push(line);
      const [pair = ""] = line.split(";");
      browser.cookie = /Max-Age=0(;|$)/.test(line) ? undefined : pair;
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
    setCookies,
  };
  return browser;
}
