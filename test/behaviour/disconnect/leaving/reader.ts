/** A client that reads the text of a stream up to a length, and then disconnects. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { Leaver } from "../leaver.ts";

/** Reads text of chat completions and messages. */
export class TextReader extends Leaver {
  #read = 0;
  #text = 0;
  #isClosed = false;

  constructor(...options: ConstructorParameters<typeof Leaver>) {
    super(...options);
    void this.closed.then(() => (this.#isClosed = true));
  }

  /** Resolves once this many characters of text have come. */
  async gotText(length: number): Promise<void> {
    while (this.#textLength() < length) await this.#nextTurn();
  }

  /** Resolves once the reply has ended. */
  async gotEnd(): Promise<void> {
    while (!/data: \[DONE\]|"type":"message_stop"/.test(this.body.slice(-200)))
      await this.#nextTurn();
  }

  /** Fails once the gateway has closed the connection. */
  async #nextTurn(): Promise<void> {
    if (this.#isClosed) throw new Error(`the gateway ended the reply: ${this.body.slice(-400)}`);
    await nextTurn();
  }

  /** Resolves with what `work` does, unless the gateway answers before with an end of the reply. */
  async during<Result>(work: Promise<Result>): Promise<Result> {
    const closed = this.closed.then(() => {
      throw new Error(`the gateway ended the reply: ${this.body.slice(-400)}`);
    });
    return Promise.race([work, closed]);
  }

  #textLength(): number {
    for (;;) {
      const end = this.body.indexOf("\n\n", this.#read);
      if (end < 0) return this.#text;
      const frame = this.body.slice(this.#read, end);
      this.#read = end + 2;
      this.#text += textIn(frame).length;
    }
  }
}

interface Frame {
  readonly choices?: ReadonlyArray<{ readonly delta?: { readonly content?: string | null } }>;
  readonly delta?: { readonly text?: string };
}

function textIn(frame: string): string {
  const json = /^data: (\{.*\})$/m.exec(frame)?.[1];
  if (json === undefined) return "";
  const { choices, delta } = JSON.parse(json) as Frame;
  return choices?.[0]?.delta?.content ?? delta?.text ?? "";
}
