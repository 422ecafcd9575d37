import { expect, it } from "vitest";
import { terminalLines } from "../../../src/observe/terminal-lines.ts";

it("a person at a terminal reads the level as a word, the message, and short facts", () => {
  const time = "2026-11-28T20:47:01.474Z";
  const local = new Date(time).toTimeString().slice(0, 8);
  const lines = [
    { level: 30, time, requestId: "r-1", callId: "c", accountId: "a", status: 200, msg: "call" },
    { level: 40, time, path: "a b", msg: "odd" },
    { level: 50, time, err: { type: "Error", message: "it broke", stack: "…" }, msg: "failed" },
  ].map((line) => JSON.stringify(line));
  const text = `\nUAS Gateway listens on http://x\n${lines.join("\n")}\n{"level":broken}\n`;
  expect(terminalLines(text).split("\n")).toEqual([
    "",
    "UAS Gateway listens on http://x",
    `${local} info  call requestId=r-1 status=200`,
    `${local} warn  odd path="a b"`,
    `${local} error failed err="it broke"`,
    '{"level":broken}',
    "",
  ]);
});
