/** Access to each RPC on each listener (R-AUTH-6). */
import {
  create,
  type DescMethod,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  getOption,
} from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { Access, access } from "../../../gen/uas/http/v1/http_pb.ts";
import { findMethods } from "../../contract/services.ts";
import { bearer, operatorToken, useGateway, withTransport } from "./harness.ts";

/** Result of the access check: `yes` also if the empty request is then refused. */
type Says = "yes" | "401" | "403";

/** By credential and listener: nothing, a key, the operator token. */
type Row = readonly [
  internal: { readonly none: Says; readonly key: Says; readonly operator: Says },
  open: { readonly none: Says; readonly key: Says; readonly operator: Says },
];

const operators: Row = [
  { none: "401", key: "403", operator: "yes" },
  { none: "401", key: "403", operator: "401" },
];
const keys: Row = [
  { none: "401", key: "yes", operator: "403" },
  { none: "401", key: "yes", operator: "401" },
];
/** RPCs for customers, in the console and by key alike. */
const customers: Row = [
  { none: "401", key: "yes", operator: "yes" },
  { none: "401", key: "yes", operator: "401" },
];

const everybody: Row = [
  { none: "yes", key: "yes", operator: "yes" },
  { none: "yes", key: "yes", operator: "401" },
];
/** Sign-in is for browsers, under `/console/rpc`; here it is not served. */
const browsers: Row = [
  { none: "403", key: "403", operator: "403" },
  { none: "403", key: "403", operator: "401" },
];
/** RPCs about the calling session, which does not exist here. */
const ownSessions: Row = [
  { none: "401", key: "403", operator: "403" },
  { none: "401", key: "403", operator: "401" },
];

/** Meaning of each option. The option of each RPC is pinned in test/contract/access.test.ts. */
const rows: ReadonlyMap<Access, Row> = new Map<Access, Row>([
  [Access.PUBLIC, everybody],
  [Access.KEY, keys],
  [Access.CUSTOMER, customers],
  [Access.SESSION, operators],
  [Access.OPERATOR, operators],
]);

/** Those that need a browser or a session beside what their option says. */
const exceptions: Readonly<Record<string, Row>> = {
  "account.v1.SessionService/SendSignInCode": browsers,
  "account.v1.SessionService/SignInWithCode": browsers,
  "account.v1.SessionService/SignInWithPassword": browsers,
  "account.v1.SessionService/SignInWithLink": browsers,
  "account.v1.SessionService/SignOut": ownSessions,
  "account.v1.SessionService/GetSession": ownSessions,
  "account.v1.SessionService/RevokeOtherSessions": ownSessions,
  "account.v1.SessionService/SendActionCode": ownSessions,
  "account.v1.UserService/UpdateUser": ownSessions,
  "account.v1.UserService/SetPassword": ownSessions,
  "account.v1.UserService/SendPhoneCode": ownSessions,
  "account.v1.UserService/SetPhone": ownSessions,
  "account.v1.UserService/StartTotp": ownSessions,
  "account.v1.UserService/ConfirmTotp": ownSessions,
  "account.v1.UserService/RemoveTotp": ownSessions,
  "key.v1.KeyService/RevealKey": ownSessions,
};

function expected(name: string, method: DescMethod): Row | undefined {
  return exceptions[name] ?? rows.get(getOption(method, access));
}

/** Time for which a stream is read: refusals arrive at once. */
const watchMs = 1_500;

async function ask(transport: Transport, method: DescMethod, header?: HeadersInit): Promise<Says> {
  try {
    if (method.methodKind === "unary") {
      const unary = method as DescMethodUnary;
      await transport.unary(unary, undefined, 5_000, header, create(method.input));
    } else if (method.methodKind === "server_streaming") {
      const input = (async function* () {
        yield create(method.input);
      })();
      const { message } = await transport.stream(
        method as DescMethodServerStreaming,
        undefined,
        watchMs,
        header,
        input,
      );
      await Array.fromAsync(message);
    } else throw new Error(`${method.name}: unknown kind`);
    return "yes";
  } catch (error) {
    if (!(error instanceof ConnectError)) throw error;
    if (error.code === Code.Unauthenticated) return "401";
    if (error.code === Code.PermissionDenied) return "403";
    // A live view has no end; an open one was admitted.
    if (error.code === Code.DeadlineExceeded && method.methodKind !== "unary") return "yes";
    // The request is empty: that it is refused for this shows that it arrived.
    expect([Code.InvalidArgument, Code.NotFound], String(error)).toContain(error.code);
    return "yes";
  }
}

type HeadersInit = Readonly<Record<string, string>>;

async function rowOf(
  baseUrl: string,
  method: DescMethod,
  key: string,
): Promise<Readonly<Record<string, Says>>> {
  return withTransport(baseUrl, "connect", async (transport) => ({
    none: await ask(transport, method),
    key: await ask(transport, method, bearer(key)),
    operator: await ask(transport, method, bearer(operatorToken)),
  }));
}

describe("R-AUTH-6", () => {
  const fixture = useGateway();

  it("every RPC is reached by exactly those who may call it, on each listener", async () => {
    const { gateway, customer } = fixture;
    const seen: Record<string, unknown> = {};
    const golden: Record<string, unknown> = {};
    for (const { name, method } of await findMethods()) {
      golden[name] = expected(name, method);
      seen[name] = [
        await rowOf(gateway.internalUrl, method, customer.key),
        await rowOf(gateway.url, method, customer.key),
      ];
    }
    expect(seen).toEqual(golden);
  });

  it.each(["", " ", "Basic b3BlcmF0b3I6", operatorToken])(
    "takes `authorization: %s` for no credential",
    async (authorization) => {
      const { method } = await findMethod("account.v1.AccountService/ListAccounts");
      await withTransport(fixture.gateway.internalUrl, "connect", async (transport) => {
        expect(await ask(transport, method, { authorization })).toBe("401");
      });
    },
  );

  it("takes the operator token in x-api-key too, and no other text for it", async () => {
    const { method } = await findMethod("account.v1.AccountService/ListAccounts");
    await withTransport(fixture.gateway.internalUrl, "connect", async (transport) => {
      expect(await ask(transport, method, { "x-api-key": operatorToken })).toBe("yes");
      for (const text of [operatorToken.slice(1), `${operatorToken}x`, operatorToken.toUpperCase()])
        expect(await ask(transport, method, bearer(text))).toBe("401");
    });
  });
});

describe("R-AUTH-6: without UAS_OPERATOR_TOKEN", () => {
  const fixture = useGateway({ operatorToken: undefined });

  it("operator RPCs are refused to every key and session, keys work", async () => {
    const { gateway, customer } = fixture;
    for (const { name, method } of await findMethods()) {
      for (const url of [gateway.internalUrl, gateway.url]) {
        const row = await rowOf(url, method, customer.key);
        // As on the public listener, if the token never counts.
        expect({ name, ...row }).toEqual({ name, ...expected(name, method)?.[1] });
      }
    }
    const { method } = await findMethod("account.v1.AccountService/ListAccounts");
    await withTransport(gateway.internalUrl, "connect", async (transport) => {
      for (const text of ["undefined", "null", " "])
        expect(await ask(transport, method, bearer(text))).toBe("401");
    });
  });
});

async function findMethod(wanted: string) {
  const found = (await findMethods()).find(({ name }) => name === wanted);
  if (found === undefined) throw new Error(`no ${wanted}`);
  return found;
}
