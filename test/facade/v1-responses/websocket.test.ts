/** GET /v1/responses with a WebSocket: refused so that clients fall back to POST at once. */
import { connect } from "node:net";
import { expect, it } from "vitest";
import { sendBytes } from "../../support/raw-http.ts";
import { errorOf, useGateway } from "../harness.ts";

const fixture = useGateway();

function handshake(path: string, upgrade = "websocket"): string {
  const { host } = new URL(fixture.gateway.url);
  return [
    `GET ${path} HTTP/1.1`,
    `Host: ${host}`,
    "Connection: Upgrade",
    `Upgrade: ${upgrade}`,
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "x-request-id: ws",
    `Authorization: Bearer ${fixture.customer.key}`,
    "\r\n",
  ].join("\r\n");
}

it.each(["/v1/responses", "/v1/v1/responses", "/v1/responses?api-version=1"])(
  "426: %s",
  async (path) => {
    const reply = await sendBytes(fixture.gateway.url, handshake(path));
    expect(reply.status).toBe(426);
    expect(errorOf(reply)).toMatchObject({
      type: "invalid_request_error",
      code: "method_not_allowed",
      message: expect.stringContaining("POST"),
    });
    expect(reply.headers).toMatchObject({ allow: "POST", "x-request-id": "ws" });
    expect(reply.headers).not.toHaveProperty("upgrade");
  },
);

it("426 as the platform's own WebSocket sees it: an error, no connection", async () => {
  const socket = new WebSocket(`${fixture.gateway.url.replace("http", "ws")}/v1/responses`);
  const event = await new Promise<Event>((resolve) => {
    socket.addEventListener("error", resolve);
    socket.addEventListener("open", resolve);
  });
  expect(event.type).toBe("error");
});

it("405 without an upgrade, or with another one", async () => {
  const plain = await fixture.send("/v1/responses", { method: "GET" });
  expect(plain.status).toBe(405);
  const other = await sendBytes(fixture.gateway.url, handshake("/v1/responses", "h2c"));
  expect(other.status).toBe(405);
});

it("closes the connection after 426, and leaves paths alone that have GET", async () => {
  const models = await sendBytes(fixture.gateway.url, handshake("/v1/models"));
  expect(models.status).toBe(200);
  const { hostname, port } = new URL(fixture.gateway.url);
  const socket = connect(Number(port), hostname);
  const pieces: Buffer[] = [];
  await new Promise((resolve, reject) => {
    socket.on("data", (piece: Buffer) => pieces.push(piece));
    socket.on("error", reject);
    socket.on("end", resolve);
    socket.write(handshake("/v1/responses"));
  });
  socket.destroy();
  expect(Buffer.concat(pieces).toString()).toMatch(/^HTTP\/1\.1 426 /);
});
