/**
 * Counts the messages that arrive on a WebSocket. The library tells of whole messages and of pings, not of what it keeps of a
 * message that is not complete; so this follows the frames (RFC 6455, section 5.2) as they come.
 */
import type { UnfinishedBody } from "../../core/unfinished-bodies.ts";

/** Bits of the first byte of a frame. A control frame may come between the fragments of a message. */
const [finalBit, controlBit] = [0x80, 0x08];

/** Frames that are lawful or not: the library checks them, and ends the connection of those that are not. */
export class ArrivingMessages {
  readonly #open: () => UnfinishedBody;
  /** The message that has begun and is not complete. */
  #message: UnfinishedBody | undefined;
  /** The part of a frame's head that has arrived. */
  readonly #head: number[] = [];
  /** The first byte of the present frame. */
  #kind = 0;
  /** Bytes of the present frame that are still to come; 0: a head comes next. */
  #left = 0;

  /** @param open called where a message begins that is not complete with the piece of its first byte */
  constructor(open: () => UnfinishedBody) {
    this.#open = open;
  }

  /** Follows what has arrived, in order. @throws GatewayError where a message is over a budget */
  push(piece: Uint8Array): void {
    let bytes = 0;
    let frames = 0;
    for (let at = 0; at < piece.length; ) {
      if (this.#left === 0) {
        this.#head.push(piece[at++] as number);
        if (!this.#readHead()) continue;
        if (this.#isData) frames++;
      }
      const taken = Math.min(this.#left, piece.length - at);
      at += taken;
      this.#left -= taken;
      if (!this.#isData) continue;
      bytes += taken;
      if (this.#left > 0 || (this.#kind & finalBit) === 0) continue;
      this.close();
      bytes = frames = 0;
    }
    if (bytes + frames === 0) return;
    this.#message ??= this.#open();
    this.#message.keep(bytes, frames + 1);
  }

  /** Ends the watch over the message that is arriving. */
  close(): void {
    this.#message?.close();
    this.#message = undefined;
  }

  get #isData(): boolean {
    return (this.#kind & controlBit) === 0;
  }

  /** Whether the head is complete: it has 2 to 14 bytes, with the length of the frame and what it is masked with. */
  #readHead(): boolean {
    const head = this.#head;
    const [kind = 0, second = 0] = head;
    const short = second & 0x7f;
    const lengthEnd = 2 + (short < 126 ? 0 : short === 126 ? 2 : 8);
    const maskBytes = second >= 0x80 ? 4 : 0;
    if (head.length < 2 || head.length < lengthEnd + maskBytes) return false;
    const long = head.slice(2, lengthEnd).reduce((length, byte) => length * 256 + byte, 0);
    this.#kind = kind;
    this.#left = lengthEnd === 2 ? short : long;
    head.length = 0;
    return true;
  }
}
