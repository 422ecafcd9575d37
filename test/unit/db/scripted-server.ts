/** A server that speaks just enough of PostgreSQL's protocol to say one thing. */
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";

/** The script: an error at log-in, or one row of text columns to every query. */
export type Script =
  | { readonly error: [code: string, message: string] }
  | { readonly row: string[] };

/** Starts one on a free port. */
export async function scriptedServer(
  script: Script,
): Promise<{ url: string; close(): Promise<void> }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    let loggedIn = false;
    socket.on("error", () => {});
    socket.on("data", () => {
      if ("error" in script) {
        socket.end(errorMessage(...script.error));
      } else {
        socket.write(loggedIn ? rowMessages(script.row) : welcome());
        loggedIn = true;
      }
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a TCP server
  const { port } = server.address() as AddressInfo;
  return {
    url: `postgresql://uas:secret@127.0.0.1:${port}/uas`,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

function message(type: string, ...parts: (Buffer | string)[]): Buffer {
  const body = Buffer.concat(parts.map((part) => Buffer.from(part)));
  const head = Buffer.from(`${type}\0\0\0\0`);
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}

function integers(...pairs: [bytes: 2 | 4, value: number][]): Buffer {
  return Buffer.concat(
    pairs.map(([bytes, value]) => {
      const buffer = Buffer.alloc(bytes);
      buffer.writeIntBE(value, 0, bytes);
      return buffer;
    }),
  );
}

const ready = message("Z", "I");

function welcome(): Buffer {
  return Buffer.concat([message("R", integers([4, 0])), ready]);
}

function errorMessage(code: string, text: string): Buffer {
  return message("E", `SFATAL\0C${code}\0M${text}\0\0`);
}

function rowMessages(values: readonly string[]): Buffer {
  // `number` is an int4, the rest is text; the columns of the version query, in its order.
  const columns = values.map((_, index) =>
    Buffer.concat([
      Buffer.from(index === 0 ? "number\0" : "version\0"),
      integers([4, 0], [2, 0], [4, index === 0 ? 23 : 25], [2, -1], [4, -1], [2, 0]),
    ]),
  );
  const cells = values.map((value) =>
    Buffer.concat([integers([4, value.length]), Buffer.from(value)]),
  );
  return Buffer.concat([
    message("T", integers([2, values.length]), ...columns),
    message("D", integers([2, values.length]), ...cells),
    message("C", "SELECT 1\0"),
    ready,
  ]);
}
