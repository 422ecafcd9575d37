/** Connect's own clients: HTTP/1.1, cleartext HTTP/2 and gRPC-web, on both listeners. */
import { connect } from "node:net";
import { Code, createClient } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { ErrorInfoSchema } from "../../../gen/google/rpc/error_details_pb.ts";
import { ErrorDetailSchema } from "../../../gen/uas/error/v1/error_pb.ts";
import { ErrorCode } from "../../../src/core/errors.ts";
import { publicModel } from "../../support/gateway.ts";
import { send } from "../../support/raw-http.ts";
import { answer, flood } from "../../support/upstream/behaviour.ts";
import {
  bearer,
  demoModel,
  exchangeOf,
  failureOf,
  inferenceOf,
  operatorToken,
  type Protocol,
  readExchange,
  useGateway,
  withTransport,
} from "./harness.ts";

const fixture = useGateway();

/** Each protocol on each listener that has it. */
const ways: ReadonlyArray<readonly ["url" | "internalUrl", Protocol]> = [
  ["internalUrl", "connect"],
  ["internalUrl", "connect-h2"],
  ["internalUrl", "grpc"],
  ["internalUrl", "grpc-web"],
  ["url", "connect"],
  ["url", "grpc-web"],
];

describe.each(ways)("%s by %s", (at, protocol) => {
  const base = (): string => fixture.gateway[at];
  const headers = (): Record<string, string> => bearer(fixture.customer.key);

  it("lists models, and echoes the request id", async () => {
    await withTransport(base(), protocol, async (transport) => {
      const id = `${at}-${protocol}`;
      let echoed: string | null = null;
      const { models } = await inferenceOf(transport).listModels(
        {},
        {
          headers: { ...headers(), "x-request-id": id },
          onHeader: (header) => void (echoed = header.get("x-request-id")),
        },
      );
      expect(models.map(({ modelKey }) => modelKey)).toEqual([demoModel, publicModel]);
      expect(echoed).toBe(id);
    });
  });

  it("carries an exchange whole and streamed, charged and recorded under its request id", async () => {
    await withTransport(base(), protocol, async (transport) => {
      for (const stream of [false, true]) {
        const id = `${at}-${protocol}-${stream}`;
        const options = { headers: { ...headers(), "x-request-id": id } };
        const request = exchangeOf(publicModel, { stream });
        const reply = await readExchange(inferenceOf(transport).exchange(request, options));
        expect(reply.status).toBe(200);
        expect(reply.body).toContain(stream ? "data: [DONE]\n\n" : "Hello there!");
        const call = await fixture.gateway.call(id);
        expect(call).toMatchObject({ ending: CallEnding.COMPLETED, stream, requestId: id });
        expect(call.cost?.amountNanos).toBeGreaterThan(0n);
      }
    });
  });

  it("fails with one detail and the request id", async () => {
    await withTransport(base(), protocol, async (transport) => {
      const id = `${at}-${protocol}-none`;
      const options = { headers: { ...headers(), "x-request-id": id } };
      const inference = inferenceOf(transport);
      for (const call of [
        () => inference.getModel({ modelKey: "none" }, options),
        () => readExchange(inference.exchange(exchangeOf("none"), options)),
      ]) {
        const { error, told } = await failureOf(call());
        expect(error.code).toBe(Code.NotFound);
        expect(error.findDetails(ErrorDetailSchema)).toHaveLength(1);
        expect(error.findDetails(ErrorInfoSchema)).toMatchObject([
          { reason: "MODEL_NOT_FOUND", domain: "uas", metadata: { param: "model" } },
        ]);
        expect(told).toMatchObject({ code: ErrorCode.MODEL_NOT_FOUND, param: "model" });
        expect(error.metadata.get("x-request-id")).toBe(id);
      }
    });
  });

  it("R-AUTH-2: answers the same to keys that are unknown, disabled, deleted or malformed", async () => {
    const { gateway } = fixture;
    const [disabled, deleted] = [await gateway.customer(), await gateway.customer()];
    await gateway.keys.disableKey({ keyId: disabled.keyId });
    await gateway.keys.deleteKey({ keyId: deleted.keyId });
    const unknown = `uas_${"x".repeat(32)}`;
    await withTransport(base(), protocol, async (transport) => {
      const said = new Set<string>();
      for (const key of [unknown, disabled.key, deleted.key, "no key"]) {
        for (const slot of [bearer(key), { "x-api-key": key }]) {
          const options = { headers: { ...slot, "x-request-id": "same" } };
          const { error } = await failureOf(inferenceOf(transport).listModels({}, options));
          const details = error.findDetails(ErrorDetailSchema);
          said.add(`${error.code} ${error.rawMessage} ${JSON.stringify(details)}`);
        }
      }
      expect([...said]).toHaveLength(1);
      expect([...said][0]).toMatch(new RegExp(`^${Code.Unauthenticated} Invalid API Key`));
    });
  });

  it("R-AUTH-1: takes the bearer before x-api-key, also where it is wrong", async () => {
    await withTransport(base(), protocol, async (transport) => {
      const key = fixture.customer.key;
      const ask = (header: Record<string, string>) =>
        inferenceOf(transport).listModels({}, { headers: header });
      expect((await ask({ "x-api-key": key })).models).toHaveLength(2);
      expect((await ask({ authorization: "Basic x", "x-api-key": key })).models).toHaveLength(2);
      const { told } = await failureOf(ask({ ...bearer("uas_wrong"), "x-api-key": key }));
      expect(told.code).toBe(ErrorCode.UNAUTHENTICATED);
    });
  });

  it("R-TXT-9, R-MON-2: a reader that leaves stops the vendor and is settled, also one that took nothing", async () => {
    await withTransport(base(), protocol, async (transport) => {
      for (const how of ["reads", "reads not"] as const) {
        fixture.upstream.clear();
        const isReading = how === "reads";
        fixture.upstream.script(
          isReading ? answer({ cutAfter: 3, ending: "hang" }) : flood(256 * 1024 * 1024),
        );
        const id = `${at}-${protocol}-leaves-${how.replace(" ", "-")}`;
        const leave = new AbortController();
        const options = { headers: { ...headers(), "x-request-id": id }, signal: leave.signal };
        const request = exchangeOf(publicModel, { stream: true });
        const parts = inferenceOf(transport).exchange(request, options)[Symbol.asyncIterator]();
        await parts.next();
        if (isReading) await parts.next();
        else {
          const isBlocked = () => fixture.upstream.requests[0]?.isBlocked;
          await expect.poll(isBlocked).toBe(true);
        }
        leave.abort();
        expect(await fixture.upstream.last().left).toBe(true);
        expect(await fixture.gateway.call(id)).toMatchObject({ ending: CallEnding.CLIENT_GONE });
        await parts.return?.().catch(() => undefined);
      }
    });
  });
});

describe("the internal listener", () => {
  it("the internal listener answers probes and metrics over HTTP/1.1, and nothing else", async () => {
    const { internalUrl } = fixture.gateway;
    const get = (path: string) => send(`${internalUrl}${path}`, { method: "GET" });
    expect(await get("/healthz")).toMatchObject({ status: 200, body: Buffer.from("ok\n") });
    expect(await get("/readyz?x=1")).toMatchObject({ status: 200, body: Buffer.from("ready\n") });
    const metrics = await get("/metrics");
    expect(metrics.status).toBe(200);
    expect(metrics.headers["content-type"]).toMatch(/^text\/plain; version=0\.0\.4/);
    for (const name of ["uas_requests_total", "uas_calls_running", "process_cpu_seconds_total"])
      expect(metrics.body.toString()).toContain(`\n# TYPE ${name} `);
    for (const path of ["/", "/metrics/", "/v1/models", "/uas.none.v1.None/No"])
      expect((await get(path)).status).toBe(404);
    expect((await send(`${internalUrl}/metrics`, { method: "POST" })).status).toBe(404);
  });

  it("the internal listener serves no REST, and the public one neither metrics nor health nor reflection", async () => {
    const { internalUrl, url } = fixture.gateway;
    const headers = { ...bearer(fixture.customer.key), "content-type": "application/json" };
    expect((await send(`${internalUrl}/v1/chat/completions`, { headers, body: "{}" })).status).toBe(
      404,
    );
    for (const path of [
      "/metrics",
      "/grpc.health.v1.Health/Check",
      "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    ]) {
      expect((await send(`${url}${path}`, { method: "GET", headers })).status).toBe(404);
      expect((await send(`${url}${path}`, { headers, body: "{}" })).status).toBe(404);
    }
    expect((await send(`${url}/healthz`, { method: "GET" })).status).toBe(200);
    expect((await send(`${url}/readyz`, { method: "GET" })).status).toBe(200);
  });

  it("gRPC itself is not on the public listener", async () => {
    const headers = { ...bearer(operatorToken), "content-type": "application/grpc" };
    const url = `${fixture.gateway.url}/${AccountService.typeName}/ListAccounts`;
    expect((await send(url, { headers, body: Buffer.alloc(5) })).status).toBe(415);
  });

  it("the internal listener refuses gRPC over HTTP/1.1 and unknown RPCs in the form of Connect's errors, and says what to do", async () => {
    const { internalUrl } = fixture.gateway;
    const post = async (path: string, type: string) => {
      const headers = { ...bearer(operatorToken), "content-type": type };
      const reply = await send(`${internalUrl}${path}`, { headers, body: Buffer.alloc(5) });
      const { code, message } = JSON.parse(reply.body.toString()) as Record<string, unknown>;
      return [reply.status, reply.headers["content-type"], code, message];
    };
    const known = `/${AccountService.typeName}/ListAccounts`;
    const json = ["application/json", "unimplemented"];
    for (const type of ["application/grpc", "application/grpc+proto"]) {
      const refused = [415, ...json, expect.stringContaining("gRPC needs HTTP/2")];
      expect(await post(known, type)).toEqual(refused);
      expect(await post("/uas.none.v1.None/No", type)).toEqual(refused);
    }
    const unknown = [404, ...json, expect.stringContaining("there is no such RPC")];
    expect(await post("/uas.none.v1.None/No", "application/json")).toEqual(unknown);
  });

  it("distinguishes HTTP/1.1 from HTTP/2 whatever pieces the first bytes arrive in", async () => {
    const { hostname, port } = new URL(fixture.gateway.internalUrl);
    const request = `GET /healthz HTTP/1.1\r\nhost: ${hostname}\r\nconnection: close\r\n\r\n`;
    const socket = connect(Number(port), hostname);
    socket.setNoDelay(true);
    const reply = Array.fromAsync(socket, (piece: Buffer) => piece.toString());
    for (const letter of request) {
      await new Promise((resolve) => socket.write(letter, resolve));
    }
    expect((await reply).join("")).toMatch(/^HTTP\/1\.1 200 OK[\s\S]*ok\n$/);
  });

  it("R-ERR-7: garbage gets an answer or the door, and the listener lives", async () => {
    const { hostname, port } = new URL(fixture.gateway.internalUrl);
    for (const garbage of [
      "\0\0\0\0\0\0",
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nxxxxxxxxxxxxxxxx",
      "PRI * HTTP/1",
      "GET\r\n\r\n",
    ]) {
      const socket = connect(Number(port), hostname);
      socket.on("error", () => {});
      const closed = new Promise((resolve) => socket.once("close", resolve));
      socket.resume();
      socket.end(garbage);
      await closed;
    }
    expect((await send(`${fixture.gateway.internalUrl}/healthz`, { method: "GET" })).status).toBe(
      200,
    );
  });

  it("R-ERR-7: the internal listener refuses a message that is no message, and one that is too large, as the caller's fault", async () => {
    const url = `${fixture.gateway.internalUrl}/${AccountService.typeName}/CreateAccount`;
    const post = (body: string | Uint8Array, type: string) =>
      send(url, { headers: { ...bearer(operatorToken), "content-type": type }, body });
    for (const reply of [
      await post("{", "application/json"),
      await post('{"name":7}', "application/json"),
      await post('{"nothing":"x"}', "application/json"),
    ]) {
      expect(reply.status, reply.body.toString()).toBe(400);
    }
    const garbage = await post(Buffer.from([0x0a, 0x01, 0xff, 0xff]), "application/proto");
    expect(garbage.status).toBe(400);
    expect(JSON.parse(garbage.body.toString())).toMatchObject({ code: "invalid_argument" });
    const huge = await post(Buffer.alloc(22 * 1024 * 1024), "application/proto");
    expect(huge.status).toBe(429);
    expect(fixture.gateway.log.filter((line) => line.includes('"level":50'))).toEqual([]);
  });

  it("the internal listener knows its accounts over Connect with curl's own JSON", async () => {
    const { customer, gateway } = fixture;
    const reply = await send(`${gateway.internalUrl}/${AccountService.typeName}/GetAccount`, {
      headers: { ...bearer(operatorToken), "content-type": "application/json" },
      body: JSON.stringify({ accountId: customer.accountId }),
    });
    expect(JSON.parse(reply.body.toString())).toMatchObject({
      account: { accountId: customer.accountId, name: "test" },
    });
  });
});

describe("operators", () => {
  it("create accounts and read their calls on the internal listener", async () => {
    await withTransport(fixture.gateway.internalUrl, "grpc", async (transport) => {
      const headers = bearer(operatorToken);
      const accounts = createClient(AccountService, transport);
      const { account } = await accounts.createAccount({ name: "by token" }, { headers });
      const { accountId } = account ?? { accountId: "" };
      expect((await accounts.getAccount({ accountId }, { headers })).account).toEqual(account);
    });
  });
});
