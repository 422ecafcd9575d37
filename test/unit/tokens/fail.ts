/** A thread for tests: does what the request says in place of counting. */
import { parentPort } from "node:worker_threads";
import type { CountQuestion } from "../../../src/tokens/counter.ts";

parentPort?.on("message", ({ body }: CountQuestion) => {
  const word = Buffer.from(body).toString();
  if (word === "throw") throw new Error("broken");
  if (word === "exit") process.exit(3);
  if (word === "hang") for (;;);
  parentPort?.postMessage(word === "fail" ? { failure: "no" } : { tokens: Number(word) });
});
