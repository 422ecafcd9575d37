/**
 * Requests with many small parts: time grows with their size, and not with its square (R-ERR-7).
 */
import { expect, it } from "vitest";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { textDialects, vendorDialects } from "../../../src/dialect/index.ts";

type Make = (count: number) => object;

function many(count: number, make: (at: number) => unknown): unknown[] {
  return Array.from({ length: count }, (_, at) => make(at));
}

const call = (at: number) => ({
  id: `call_${at}`,
  type: "function",
  function: { name: "f", arguments: "{}" },
});
const result = (at: number) => ({ role: "tool", tool_call_id: `call_${at}`, content: "r" });
const named = (at: number) => ({ type: "function", function: { name: `f${at}` } });
const membersOf = (n: number): object =>
  Object.fromEntries(Array.from({ length: n }, (_, at) => [`x${at}`, 1]));
const asked = [{ role: "user", content: "x" }];
const allowed =
  (mode: string): Make =>
  (n) => ({
    messages: asked,
    tools: many(n, named),
    tool_choice: {
      type: "allowed_tools",
      allowed_tools: { mode, tools: many(n, (at) => named(n - 1 - at)) },
    },
  });

const rows: ReadonlyArray<readonly [string, Dialect, Make]> = [
  ["messages", Dialect.CHAT_COMPLETIONS, (n) => ({ messages: many(n, () => asked[0]) })],
  [
    "calls of one turn",
    Dialect.CHAT_COMPLETIONS,
    (n) => ({
      messages: [...asked, { role: "assistant", tool_calls: many(n, call) }, ...many(n, result)],
    }),
  ],
  ["allowed tools", Dialect.CHAT_COMPLETIONS, allowed("auto")],
  ["allowed tools of which one must be called", Dialect.CHAT_COMPLETIONS, allowed("required")],
  ["unknown members", Dialect.CHAT_COMPLETIONS, (n) => ({ messages: asked, ...membersOf(n) })],
  [
    "unknown members of responses",
    Dialect.RESPONSES,
    (n) => ({
      input: "x",
      text: membersOf(n),
      ...membersOf(n),
    }),
  ],
  [
    "members of metadata",
    Dialect.MESSAGES,
    (n) => ({
      max_tokens: 9,
      messages: asked,
      metadata: membersOf(n),
    }),
  ],
  [
    "blocks",
    Dialect.MESSAGES,
    (n) => ({
      max_tokens: 9,
      messages: [{ role: "user", content: many(n, () => ({ type: "text", text: "x" })) }],
    }),
  ],
  [
    "items",
    Dialect.RESPONSES,
    (n) => ({
      input: many(n, (at) =>
        at % 2 === 0
          ? { type: "function_call", call_id: `c${at}`, name: "f", arguments: "{}" }
          : { type: "function_call_output", call_id: `c${at - 1}`, output: "x" },
      ),
    }),
  ],
];

it.each(rows)(
  "time grows with the size of a request with many small parts, and not with its square: %s",
  (_, sourceDialect, make) => {
    const took = (count: number, to: (typeof vendors)[number]): number => {
      const body = Buffer.from(JSON.stringify({ model: "m", ...make(count) }));
      const style = textDialects.get(sourceDialect);
      const start = process.threadCpuUsage();
      const generation = style?.decodeRequest(body, { platformAliases: false });
      if (generation === undefined) throw new Error("no such style");
      to.encodeRequest(generation, {
        model: "v",
        stream: false,
        maxOutputTokens: 100,
        sourceDialect,
      });
      // Not by the clock: other tests run beside this one.
      const { user, system } = process.threadCpuUsage(start);
      return (user + system) / 1_000;
    };
    // Eight times the size takes eight times as long, or up to 64 times if time grows with its
    // square. Processor time comes in ticks of 4 ms, and the garbage of other tests may be
    // collected in between: then once more.
    const growth = (to: (typeof vendors)[number]): number =>
      took(16_000, to) / Math.max(took(2_000, to), 8);
    for (const vendor of vendors) {
      took(500, vendor);
      const isLinear = [1, 2, 3].some(() => growth(vendor) < 18);
      expect([vendor.word, isLinear]).toEqual([vendor.word, true]);
    }
  },
  60_000,
);

const vendors = Object.values(vendorDialects);

it("a request may have more unknown members than arguments fit on the stack", () => {
  const body = Buffer.from(JSON.stringify({ model: "m", input: "x", ...membersOf(200_000) }));
  const read = textDialects.get(Dialect.RESPONSES)?.decodeRequest(body, { platformAliases: false });
  expect(read?.extras).toHaveLength(200_000);
});
