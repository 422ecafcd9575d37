/** `GET /v1/responses` as a WebSocket: each message is a separate call. */
import { once } from "node:events";
import { connect as connectTcp } from "node:net";
import OpenAI from "openai";
import { ResponsesWS } from "openai/resources/responses/ws";
import { describe, expect, it } from "vitest";
import { CallEnding } from "../../../../gen/uas/billing/v1/call_pb.ts";
import { answer } from "../../../support/upstream/behaviour.ts";
import { sendBytes } from "../../../support/raw-http.ts";
import { modelOf, useStyleGateway, vendorStyles } from "../../../support/style-gateway.ts";
import { errorOf, expectFree, newRequestId } from "../../harness.ts";
import { type Client, closeClients, connect, type Message } from "./websocket-harness.ts";

const fixture = useStyleGateway();
closeClients();

const greeting = "Hello there, Grüße 🌍!";
const chat = modelOf("chat");

async function open(headers: Record<string, string> = {}) {
  const customer = await fixture.gateway.customer();
  const client = await connect(fixture.gateway.url, customer.key, { headers });
  return { customer, client };
}

async function turn(client: Client, members: Readonly<Record<string, unknown>>) {
  client.create(members);
  return client.until("response.completed", "response.incomplete");
}

function textOf(messages: readonly Message[]): string {
  return messages
    .filter(({ type }) => type === "response.output_text.delta")
    .map(({ delta }) => String(delta))
    .join("");
}

function responseOf(messages: readonly Message[]): Readonly<Record<string, unknown>> {
  return messages.at(-1)?.["response"] as Readonly<Record<string, unknown>>;
}

function sent(style: (typeof vendorStyles)[number]): string {
  return fixture.upstream(style).last().body.toString();
}

describe.each(vendorStyles)("a connection to a model whose vendor speaks %s", (style) => {
  it("serves one request after the other, each as a call that is charged", async () => {
    const id = newRequestId();
    const { customer, client } = await open({ "x-request-id": id });
    for (const input of ["Hi", "Hi again"]) {
      const messages = await turn(client, { model: modelOf(style), input });
      expect(messages.map(({ type }) => type)).toEqual(
        expect.arrayContaining(["response.created", "response.output_item.done"]),
      );
      expect(textOf(messages)).toBe(greeting);
      expect(responseOf(messages)).toMatchObject({ status: "completed", model: modelOf(style) });
    }
    const calls = await fixture.gateway.calls(id, 2);
    expect(calls.map(({ ending }) => ending)).toEqual([CallEnding.COMPLETED, CallEnding.COMPLETED]);
    for (const call of calls) expect(call.cost?.amountNanos).toBeGreaterThan(0n);
    expect((await fixture.gateway.money(customer.accountId)).held).toBe(0n);
  });

  it("continues an unstored response within the connection, and only there", async () => {
    const { customer, client } = await open();
    const first = await turn(client, { model: modelOf(style), input: "One", store: false });
    const { id } = responseOf(first);
    const next = { model: modelOf(style), store: false, previous_response_id: id };
    const second = await turn(client, { ...next, input: "Two" });
    expect(textOf(second)).toBe(greeting);
    expect(responseOf(second)).toMatchObject({ previous_response_id: id });
    expect(sent(style)).toContain("One");
    expect(sent(style)).toContain("Two");
    const other = await connect(fixture.gateway.url, customer.key);
    const [lost] = await turn(other, { ...next, input: "Three" });
    expect(lost).toMatchObject({
      type: "error",
      status: 400,
      error: { code: "previous_response_not_found", param: "previous_response_id" },
    });
  });
});

describe("a connection", () => {
  it("a connection continues a stored response of another connection", async () => {
    const { customer, client } = await open();
    const first = responseOf(await turn(client, { model: chat, input: "One" }));
    const other = await connect(fixture.gateway.url, customer.key);
    const next = await turn(other, {
      model: chat,
      input: "Two",
      previous_response_id: first["id"],
    });
    expect(responseOf(next)).toMatchObject({ previous_response_id: first["id"] });
    expect(sent("chat")).toContain("One");
  });

  it("prepares a request without calling a model or a charge", async () => {
    const { customer, client } = await open();
    const prepared = await expectFree(fixture.gateway, customer, () =>
      turn(client, { model: chat, input: "One", instructions: "Be brief", generate: false }),
    );
    expect(prepared.map(({ type }) => type)).toEqual(["response.created", "response.completed"]);
    expect(fixture.upstream("chat").requests).toEqual([]);
    const { id, output } = responseOf(prepared);
    expect(output).toEqual([]);
    const next = await turn(client, { model: chat, input: [], previous_response_id: id });
    expect(textOf(next)).toBe(greeting);
    expect(sent("chat")).toContain("One");
  });

  it("a WebSocket connection serves the official SDK", async () => {
    const { key } = await fixture.gateway.customer();
    const openai = new OpenAI({ apiKey: key, baseURL: `${fixture.gateway.url}/v1` });
    const socket = new ResponsesWS(openai);
    const text: string[] = [];
    socket.on("response.output_text.delta", ({ delta }) => text.push(delta));
    const completed = new Promise((resolve, reject) => {
      socket.on("response.completed", resolve);
      socket.on("error", reject);
    });
    socket.send({ type: "response.create", model: modelOf("messages"), input: "Hi" });
    await completed;
    expect(text.join("")).toBe(greeting);
    socket.close();
  });

  it("a connection serves named streams at the same time, and names them in their messages", async () => {
    const { client } = await open();
    client.create({ model: chat, input: "Hi", stream_id: "a" });
    client.create({ model: chat, input: "Hi", stream_id: "b" });
    const ended = new Set<unknown>();
    while (ended.size < 2) {
      const message = await client.next();
      expect(["a", "b"]).toContain(message["stream_id"]);
      if (message.type === "response.completed") ended.add(message["stream_id"]);
    }
  });

  it("a connection reports what is wrong with a message, and goes on", async () => {
    const { customer, client } = await open();
    const rows = [
      ["{", undefined],
      [JSON.stringify({ type: "response.steer" }), "type"],
      [JSON.stringify({ type: "response.create", input: "Hi" }), "model"],
      [JSON.stringify({ type: "response.create", model: chat, background: true }), "background"],
      [JSON.stringify({ type: "response.create", model: chat, input: 1 }), "input"],
      [JSON.stringify({ type: "response.create", model: chat, stream_id: 1 }), "stream_id"],
    ] as const;
    await expectFree(fixture.gateway, customer, async () => {
      for (const [text, param] of rows) {
        client.socket.send(text);
        const message = await client.next();
        expect(message).toMatchObject({
          type: "error",
          status: 400,
          error: { type: "invalid_request_error", code: "invalid_request", param: param ?? null },
        });
      }
    });
    client.create({ model: "no-model", input: "Hi" });
    expect(await client.next()).toMatchObject({ status: 404, error: { code: "model_not_found" } });
    expect(textOf(await turn(client, { model: chat, input: "Hi" }))).toBe(greeting);
  });

  it("a connection reports a vendor's failure with its status, before and in a reply", async () => {
    const { client } = await open();
    const early = await turn(client, { model: chat, input: "status 400" });
    expect(early).toMatchObject([{ type: "error", status: 400 }]);
    const late = await turn(client, { model: chat, input: "error midstream" });
    expect(late.at(-1)).toMatchObject({ type: "error", status: expect.any(Number) });
    expect(late.length).toBeGreaterThan(1);
    expect(textOf(await turn(client, { model: chat, input: "Hi" }))).toBe(greeting);
  });

  it("a connection ends the call of a client that disconnects", async () => {
    const id = newRequestId();
    const { client } = await open({ "x-request-id": id });
    fixture
      .upstream("chat")
      .script(answer({ text: ["12345678", "abcdefgh", "x", "y"], cutAfter: 3, ending: "hang" }));
    client.create({ model: chat, input: "Hi" });
    await client.until("response.output_text.delta");
    client.socket.terminate();
    const call = await fixture.gateway.call(id);
    expect(call.ending).toBe(CallEnding.CLIENT_GONE);
    expect(call.cost?.amountNanos).toBeGreaterThan(0n);
  });

  it("a WebSocket connection answers pings", async () => {
    const { client } = await open();
    client.socket.ping("here");
    const [data] = (await once(client.socket, "pong")) as [Buffer];
    expect(data.toString()).toBe("here");
  });

  it.each([
    ["binary data", (client: Client) => client.socket.send(Buffer.from("{}")), 1003],
    [
      "a message of more than 20 MiB",
      (client: Client) => client.socket.send("x".repeat(20 * 1024 * 1024 + 1)),
      1009,
    ],
  ])("a WebSocket connection is closed after %s", async (_, act, code) => {
    const { client } = await open();
    act(client);
    expect(await client.closed).toMatchObject({ code });
  });

  it("a connection is closed after an unmasked frame", async () => {
    const { client } = await open();
    const raw = (client.socket as unknown as { _socket: { write(bytes: Buffer): void } })._socket;
    raw.write(Buffer.from([0x81, 0x02, 0x7b, 0x7d]));
    expect(await client.closed).toMatchObject({ code: 1002 });
  });

  it("a connection refuses requests of a key that was disabled since, and closes", async () => {
    const { customer, client } = await open();
    await turn(client, { model: chat, input: "Hi" });
    await fixture.gateway.keys.disableKey({ keyId: customer.keyId });
    await expect
      .poll(async () => (await turn(client, { model: chat, input: "Hi" })).at(-1)?.type)
      .toBe("error");
    expect(await client.closed).toMatchObject({ code: 1008 });
  });

  it("a connection serves at most 16 requests at once", async () => {
    const { client } = await open();
    fixture.upstream("chat").script(answer({ text: ["12345678"], cutAfter: 0, ending: "hang" }));
    for (let i = 0; i < 17; i++) client.create({ model: chat, input: "Hi" });
    const [message] = await client.until();
    expect(message).toMatchObject({ status: 429, error: { code: "rate_limit_exceeded" } });
  });
});

describe("a handshake", () => {
  it.each(["/v1/responses", "/v1/v1/responses", "/v1/responses?api-version=1"])(
    "a handshake is accepted at %s",
    async (path) => {
      const { key } = await fixture.gateway.customer();
      const client = await connect(fixture.gateway.url, key, { path });
      expect(client.socket.readyState).toBe(client.socket.OPEN);
    },
  );

  it("a handshake without a good key is a 401 with a JSON body", async () => {
    const reply = await sendBytes(
      fixture.gateway.url,
      handshake("/v1/responses", "Bearer uas_none"),
    );
    expect(reply.status).toBe(401);
    expect(errorOf(reply)).toMatchObject({ message: "Invalid API Key" });
    expect(reply.headers).toMatchObject({ "x-request-id": "ws", "x-should-retry": "false" });
  });

  it("that is invalid is a 400 with a JSON body", async () => {
    const { key } = await fixture.gateway.customer();
    const bytes = handshake("/v1/responses", `Bearer ${key}`).replace(
      /Sec-WebSocket-Key: .*\r\n/,
      "",
    );
    const reply = await sendBytes(fixture.gateway.url, bytes);
    expect(reply.status).toBe(400);
    expect(errorOf(reply)).toMatchObject({ code: "invalid_request" });
  });

  it("a handshake at a path that only takes POST is a 426, after which clients use POST", async () => {
    const { key } = await fixture.gateway.customer();
    const reply = await sendBytes(
      fixture.gateway.url,
      handshake("/v1/chat/completions", `Bearer ${key}`),
    );
    expect(reply.status).toBe(426);
    expect(errorOf(reply)).toMatchObject({ message: expect.stringContaining("POST") });
    expect(reply.headers).not.toHaveProperty("upgrade");
  });

  it("a handshake at a path that has GET is served without an upgrade", async () => {
    const { key } = await fixture.gateway.customer();
    const reply = await sendBytes(fixture.gateway.url, handshake("/v1/models", `Bearer ${key}`));
    expect(reply.status).toBe(200);
  });

  it("a handshake to another protocol, or none, is a 405", async () => {
    const { key } = await fixture.gateway.customer();
    const other = handshake("/v1/responses", `Bearer ${key}`).replace(
      "Upgrade: websocket",
      "Upgrade: h2c",
    );
    expect((await sendBytes(fixture.gateway.url, other)).status).toBe(405);
  });

  it("a handshake of a client that disconnects at once harms no other client", async () => {
    const { key } = await fixture.gateway.customer();
    const { hostname, port } = new URL(fixture.gateway.url);
    const socket = connectTcp(Number(port), hostname);
    await once(socket, "connect");
    socket.write(handshake("/v1/responses", `Bearer ${key}`));
    socket.resetAndDestroy();
    const client = await connect(fixture.gateway.url, key);
    expect(textOf(await turn(client, { model: chat, input: "Hi" }))).toBe(greeting);
  });
});

function handshake(path: string, authorization: string): string {
  return [
    `GET ${path} HTTP/1.1`,
    `Host: ${new URL(fixture.gateway.url).host}`,
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "x-request-id: ws",
    `Authorization: ${authorization}`,
    "\r\n",
  ].join("\r\n");
}
