/** Requests that Node's HTTP parser refuses, at both listeners. */
import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import { useGateway } from "../../../behaviour/rpc/harness.ts";
import { sendBytes } from "../../../support/raw-http.ts";

const fixture = useGateway();

describe.each(["url", "internalUrl"] as const)(
  "a malformed request at the listener of %s",
  (name) => {
    it("is a 400 whose JSON says what is wrong", async () => {
      const { status, headers, body } = await sendBytes(fixture.gateway[name], "hello\r\n\r\n");
      expect(status).toBe(400);
      expect(headers["content-type"]).toBe("application/json; charset=utf-8");
      expect(JSON.stringify(JSON.parse(body.toString()))).toContain("malformed or incomplete");
    });

    it("is answered once if the unread rest of a body is broken", async () => {
      const request = "GET /healthz HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";
      const { hostname, port } = new URL(fixture.gateway[name]);
      const socket = connect(Number(port), hostname);
      const pieces: Buffer[] = [];
      const closed = new Promise((resolve) => socket.once("close", resolve));
      socket.on("error", () => {});
      socket.on("data", (piece: Buffer) => {
        // Answered: only now comes the rest.
        if (pieces.push(piece) === 1) socket.write("zz\r\n");
      });
      socket.write(request);
      await closed;
      const replies = Buffer.concat(pieces).toString();
      expect(replies.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200"]);
    });
  },
);
