import { describe, expect, it } from "vitest";
import {
  ReasoningCollector,
  recallReasoning,
  type ReasoningCarry,
} from "../../../../src/responses/stored/reasoning.ts";
import {
  answer,
  answerStreamed,
  decode,
  type Json,
  send,
  sendGeneration,
  type Vendor,
} from "./translation.ts";
import { cameBack, expected, forms, nextRequest, thought, thoughtReply } from "./reasoning.ts";

const pairs = [
  ["messages", "responses"],
  ["messages", "gemini"],
  ["messages", "chat"],
  ["responses", "messages"],
  ["responses", "gemini"],
  ["responses", "chat"],
] as const;

describe("wire §3, reasoning text back (R-TXT-3): a vendor gets its own, byte for byte", () => {
  for (const [client, vendor] of pairs) {
    for (const [form, get] of forms({ from: vendor, to: client })) {
      it(`a vendor gets its own reasoning back byte for byte: ${vendor} → ${client} → ${vendor}, ${form}`, () => {
        const got = get();
        expect(got.dropped).toEqual([]);
        const sent = send({ from: client, to: vendor }, nextRequest(client, got));
        expect(cameBack(vendor, sent)).toEqual(expected(vendor));
        expect(sent.dropped).toEqual([]);
      });
    }
  }
});

const all: readonly Vendor[] = ["messages", "responses", "gemini", "chat"];
const foreign = pairs.flatMap(([client, vendor]) =>
  all
    .filter((other) => other !== vendor && other !== client)
    .map((other) => ({ client, vendor, other })),
);

describe("wire §3, reasoning text back (R-TXT-3): no vendor gets another's", () => {
  it.each(foreign)(
    "no vendor gets another's reasoning: $vendor → $client → $other",
    ({ client, vendor, other }) => {
      const got = answer({ from: vendor, to: client }, thoughtReply(vendor));
      const { body, dropped } = send({ from: client, to: other }, nextRequest(client, got));
      const text = JSON.stringify(body);
      expect(text).not.toContain("EqQBCkYIBBgCKkA");
      expect(text).not.toContain("uas1.");
      expect(dropped).toEqual([client === "messages" ? "messages.thinking" : "input.reasoning"]);
    },
  );
});

/** Keeps in memory what the database keeps in operation. */
function createCarry(): ReasoningCarry {
  const kept = new Map<string, string>();
  return {
    keep: (_account, callIds, json) => {
      for (const id of callIds) kept.set(id, json);
      return Promise.resolve(true);
    },
    find: (_account, callIds) =>
      Promise.resolve(new Map(callIds.flatMap((id) => [[id, kept.get(id) ?? "[]"] as const]))),
  };
}

/** The reply through a chat client, whose next request names the calls only. */
async function throughChat(vendor: Vendor, reply: Json, isStreamed: boolean) {
  const carry = createCarry();
  const watcher = new ReasoningCollector();
  const way = { from: vendor, to: "chat" } as const;
  const { choices } = answer(way, reply, { watcher: new ReasoningCollector() }).body;
  (isStreamed ? answerStreamed : answer)(way, reply, { watcher });
  const kept = watcher.sealed();
  if (kept === undefined) throw new Error("nothing was kept");
  await carry.keep("a", kept.callIds, kept.json);
  const { content, tool_calls } = choices[0].message;
  const generation = decode("chat", {
    messages: [
      { role: "user", content: "q" },
      { role: "assistant", content, tool_calls },
      ...tool_calls.map(({ id }: Json) => ({ role: "tool", tool_call_id: id, content: "1" })),
    ],
  });
  await recallReasoning(carry, "a", generation);
  return sendGeneration({ from: "chat", to: vendor }, generation);
}

describe("wire §3, reasoning text back (R-TXT-3): a chat client has no place for it: the gateway keeps it", () => {
  for (const vendor of ["messages", "responses", "gemini"] as const) {
    it.each([false, true])(
      `the gateway keeps reasoning for a chat client: ${vendor} → chat → ${vendor}, streamed: %s`,
      async (isStreamed) => {
        const sent = await throughChat(vendor, thoughtReply(vendor), isStreamed);
        expect(cameBack(vendor, sent)).toEqual(expected(vendor));
        expect(sent.dropped).toEqual([]);
      },
    );
  }

  it("messages → chat → messages: around the text that stood between", async () => {
    const [thinking, redacted, ...calls] = thought.messages;
    const content = [thinking, { type: "text", text: "Wait." }, redacted, ...calls];
    const reply = { ...thoughtReply("messages"), content };
    const sent = await throughChat("messages", reply, true);
    expect(cameBack("messages", sent)).toEqual(content);
  });
});
