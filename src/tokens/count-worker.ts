/**
 * The counting thread: counts one text at a time, and loads the tables of an encoding with its
 * first text.
 */
import { parentPort } from "node:worker_threads";
import type { CountAnswer, CountQuestion } from "./counter.ts";
import type { Encoding } from "./family.ts";
import { type CountText, loadEncoding, countRequest, countReply } from "./counted-text.ts";

const loaded = new Map<Encoding, Promise<CountText>>();

async function answer({ encoding, kind, body }: CountQuestion): Promise<CountAnswer> {
  try {
    let loading = loaded.get(encoding);
    if (loading === undefined) loaded.set(encoding, (loading = loadEncoding(encoding)));
    const count = await loading;
    const json = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("utf8");
    return { tokens: (kind === "request" ? countRequest : countReply)(json, count) };
  } catch (error) {
    return { failure: String(error) };
  }
}

parentPort?.on("message", (question: CountQuestion) => {
  void answer(question).then((answered) => parentPort?.postMessage(answered));
});
