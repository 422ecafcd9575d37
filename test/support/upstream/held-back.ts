/** A vendor's answer that is held back in its middle, so that a test can do something meanwhile. */
import type { Behaviour, Exchange } from "./exchange.ts";

/** Kind and duration of the delay. */
export interface HeldBack {
  /** After which part of its bytes, 0 to 1; below 0: before its head. */
  readonly part: number;
  /** Receives the output before it is held back: the head or these bytes, whichever is first. */
  readonly onSent?: (sent: Buffer) => void;
  /** The rest follows when this resolves, unless the gateway leaves first. */
  readonly until: Promise<void>;
}

/** Holds an answer back. What is sent before goes out in one piece. */
export function heldBack(answer: Behaviour, { part, onSent, until }: HeldBack): Behaviour {
  return async (exchange) => {
    const { head, body } = await recorded(answer, exchange);
    const left = exchange.request.left.then(() => {});
    if (part < 0) await Promise.race([until, left]);
    exchange.response.writeHead(...head);
    const cut = part < 0 ? 0 : Math.floor(body.length * part);
    exchange.response.flushHeaders();
    if (cut > 0 && !(await exchange.write(body.subarray(0, cut)))) return;
    if (part >= 0) {
      onSent?.(body.subarray(0, cut));
      await Promise.race([until, left]);
    }
    if (await exchange.write(body.subarray(cut))) exchange.response.end();
  };
}

type Head = [status: number, headers: Record<string, string>];

/** The answer as it would go out. */
async function recorded(
  answer: Behaviour,
  { request, signal }: Exchange,
): Promise<{ head: Head; body: Buffer }> {
  const pieces: Buffer[] = [];
  let head: Head = [200, {}];
  const add = (piece: Uint8Array): boolean => pieces.push(Buffer.from(piece)) > 0;
  const response = {
    writeHead: (...given: Head) => void (head = given),
    flushHeaders() {},
    end: (piece?: Uint8Array) => void (piece && add(piece)),
  };
  const fake = {
    request,
    signal,
    response,
    write: (piece: Uint8Array) => Promise.resolve(add(piece)),
  };
  await answer(fake as unknown as Exchange);
  return { head, body: Buffer.concat(pieces) };
}
