/** The public listener's HTTP server: what it answers itself. */
import { once } from "node:events";
import { IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, connect, Socket } from "node:net";
import { Duplex } from "node:stream";
import { expect, test } from "vitest";
import {
  clientErrorHandler,
  createHttpServer,
  halfClosed,
} from "../../../src/edge/rest/http-server.ts";
import { StreamWriter } from "../../../src/edge/rest/rest-call.ts";

test("a client that asks for a WebSocket at a malformed host, and has left when it is answered, ends nothing but its connection", async () => {
  const upgrades = { accepts: () => true, onUpgrade: () => expect.fail("was accepted") };
  const server = createHttpServer(() => {}, upgrades);
  const request = Object.assign(new IncomingMessage(new Socket()), {
    httpVersion: "1.1",
    rawHeaders: ["Host", "a b"],
    headers: { host: "a b" },
  });
  let answer = "";
  const socket = new Duplex({
    read() {},
    write(chunk: Buffer, _encoding, done) {
      answer += chunk.toString();
      done(new Error("write ECONNRESET"));
    },
  });
  // Not by events.once: that would listen for the error.
  const closed = new Promise<void>((resolve) => socket.once("close", resolve));
  server.emit("upgrade", request, socket, Buffer.alloc(0));
  await closed;
  expect(answer).toMatch(/^HTTP\/1\.1 400 /);
  expect(socket.destroyed).toBe(true);
});

test("a client that closes its sending side when its stream has ended, and not left yet, gets it whole, and ends nothing else", async () => {
  const upgrades = { accepts: () => false, onUpgrade: () => expect.fail("was accepted") };
  const serve = (_request: unknown, response: ServerResponse): void => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    const writer = new StreamWriter(response, Buffer.from(": silence\n\n"));
    void writer.write(Buffer.from("data: 1\n\n"));
    writer.end();
    expect(response.writableFinished).toBe(false);
    response.emit(halfClosed);
    writer.close();
  };
  const server = createHttpServer(serve, upgrades);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const reply = await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: "close" } });
  expect(await reply.text()).toBe("data: 1\n\n");
  server.close();
  await once(server, "close");
});

test("the connection of a body that drips behind its reply is ended by the time limit of requests", async () => {
  const upgrades = { accepts: () => false, onUpgrade: () => expect.fail("was accepted") };
  const server = createHttpServer((_request, response) => response.end("early"), upgrades);
  server.on("clientError", clientErrorHandler);
  // Node checks both once a second.
  server.headersTimeout = server.requestTimeout = 100;
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  socket.on("error", () => {});
  socket.write("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n{");
  const [reply] = (await once(socket, "data")) as [Buffer];
  expect(reply.toString()).toMatch(/^HTTP\/1\.1 200 /);
  await once(socket, "close");
  server.close();
  await once(server, "close");
});
