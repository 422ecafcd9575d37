/** A client of WebSockets that a test can read message by message. */
import { once } from "node:events";
import { afterEach } from "vitest";
import { type ClientOptions, WebSocket } from "ws";

/** A message of the gateway. */
export type Message = Readonly<Record<string, unknown>> & { readonly type: string };

/** An open connection. */
export interface Client {
  readonly socket: WebSocket;
  /** Sends a `response.create` with these members, or what is given as text. */
  create(members: Readonly<Record<string, unknown>>): void;
  /** The next message; rejects if the connection closes before. */
  next(): Promise<Message>;
  /** Messages until one of this type, or an error, which is the last. */
  until(...types: readonly string[]): Promise<Message[]>;
  /** Resolves with code and reason of the close. */
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
}

const opened: WebSocket[] = [];

/** Cuts what a test leaves open. */
export function closeClients(): void {
  afterEach(() => {
    for (const socket of opened.splice(0)) socket.terminate();
  });
}

/** Connects. Rejects if the handshake is refused. */
export async function connect(
  gatewayUrl: string,
  key: string,
  { path = "/v1/responses", ...options }: ClientOptions & { readonly path?: string } = {},
): Promise<Client> {
  const socket = new WebSocket(`${gatewayUrl.replace("http", "ws")}${path}`, {
    ...options,
    headers: { authorization: `Bearer ${key}`, ...options.headers },
  });
  opened.push(socket);
  const messages: Message[] = [];
  let wake: (() => void) | undefined;
  let isClosed = false;
  socket.on("message", (data: Buffer) => {
    messages.push(JSON.parse(data.toString()) as Message);
    wake?.();
  });
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.once("close", (code, reason) => {
      isClosed = true;
      wake?.();
      resolve({ code, reason: reason.toString() });
    });
  });
  await once(socket, "open");
  const next = async (): Promise<Message> => {
    for (;;) {
      const message = messages.shift();
      if (message !== undefined) return message;
      if (isClosed) throw new Error("the connection was closed");
      await new Promise<void>((resolve) => (wake = resolve));
    }
  };
  return {
    socket,
    create: (members) => socket.send(JSON.stringify({ type: "response.create", ...members })),
    next,
    async until(...types) {
      const seen: Message[] = [];
      for (;;) {
        const message = await next();
        seen.push(message);
        if (message.type === "error" || types.includes(message.type)) return seen;
      }
    },
    closed,
  };
}
