/**
 * A strict mail server on a real socket: it speaks RFC 5321 with authentication, and refuses what
 * is out of order.
 */
import { once } from "node:events";
import { createServer, type AddressInfo, type Socket } from "node:net";

/** An e-mail that the server took. */
export interface ReceivedMail {
  readonly from: string;
  readonly to: readonly string[];
  /** By name in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly text: string;
}

/**
 * Opens a server. Close it. `answers`: what it answers to recipients, by address, in place of 250.
 */
export async function openSmtpServer(user: string, password: string) {
  const mails: ReceivedMail[] = [];
  const faults: string[] = [];
  const answers = new Map<string, string>();
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {});
    converse(socket, { credential: `\0${user}\0${password}`, mails, faults, answers });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `smtp://${encodeURIComponent(user)}:${encodeURIComponent(password)}@127.0.0.1:${port}`,
    mails,
    /** Clients' violations of the protocol. */
    faults,
    answers,
    async close(): Promise<void> {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

interface Conversation {
  readonly credential: string;
  readonly mails: ReceivedMail[];
  readonly faults: string[];
  readonly answers: ReadonlyMap<string, string>;
}

function converse(socket: Socket, { credential, mails, faults, answers }: Conversation): void {
  let [isGreeted, isKnown, isData] = [false, false, false];
  let from: string | undefined;
  let to: string[] = [];
  let waiting = "";
  const say = (line: string): void => void socket.write(`${line}\r\n`);
  const fault = (line: string): void => {
    faults.push(line);
    say("503 5.5.1 bad sequence of commands");
  };
  const command = (line: string): void => {
    const path = /^(?:MAIL FROM|RCPT TO):<([^<>]*)>/i.exec(line)?.[1];
    if (/^EHLO \S+$/i.test(line)) {
      isGreeted = true;
      socket.write("250-mail.test\r\n250-8BITMIME\r\n250 AUTH PLAIN\r\n");
    } else if (/^AUTH PLAIN \S+$/i.test(line) && isGreeted && !isKnown) {
      isKnown = Buffer.from(line.slice(11), "base64").toString() === credential;
      say(isKnown ? "235 2.7.0 welcome" : "535 5.7.8 unknown credentials");
    } else if (/^MAIL FROM/i.test(line) && isKnown && from === undefined && path) {
      from = path;
      say("250 2.1.0 ok");
    } else if (/^RCPT TO/i.test(line) && from !== undefined && path) {
      const answer = answers.get(path) ?? "250 2.1.5 ok";
      if (answer.startsWith("250")) to.push(path);
      say(answer);
    } else if (/^DATA$/i.test(line) && to.length > 0) {
      isData = true;
      say("354 go on");
    } else if (/^RSET$/i.test(line)) {
      [from, to] = [undefined, []];
      say("250 2.0.0 ok");
    } else if (/^QUIT$/i.test(line)) {
      say("221 2.0.0 bye");
      socket.end();
    } else fault(line);
  };
  socket.on("data", (chunk) => {
    waiting += chunk.toString();
    for (;;) {
      const mark = isData ? "\r\n.\r\n" : "\r\n";
      const end = waiting.indexOf(mark);
      if (end < 0) return;
      const part = waiting.slice(0, end);
      waiting = waiting.slice(end + mark.length);
      if (!isData) {
        command(part);
        continue;
      }
      isData = false;
      if (/[^\r]\n|^\n/.test(part)) faults.push("a bare line feed");
      mails.push(readMail({ from: from ?? "", to }, part));
      [from, to] = [undefined, []];
      say("250 2.0.0 queued");
    }
  });
  say("220 mail.test ESMTP");
}

function readMail(envelope: { from: string; to: readonly string[] }, data: string): ReceivedMail {
  const [head = "", ...body] = data.split("\r\n\r\n");
  const lines = head.replaceAll(/\r\n[ \t]+/g, " ").split("\r\n");
  const headers = new Map(
    lines.map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
    }),
  );
  const text = body.join("\r\n\r\n").replaceAll(/=\r\n/g, "").replaceAll("\r\n", "\n");
  return { ...envelope, headers, text };
}
