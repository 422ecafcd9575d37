import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { VendorQuirks } from "../../../../src/core/vendor-quirks.ts";
import { chatCompletions } from "../../../../src/dialect/chat-completions/dialect.ts";
import type { TextDialect } from "../../../../src/dialect/dialect.ts";
import { messages } from "../../../../src/dialect/messages/dialect.ts";
import { responses } from "../../../../src/dialect/responses/dialect.ts";
import { read } from "../relaying.ts";

/** A body as a vendor with these quirks gets it, relayed. */
function sent(
  style: TextDialect,
  body: string | object,
  quirks: VendorQuirks | undefined,
  model = "m",
): string {
  const target = { model, ...(quirks && { quirks }) };
  const request = read(style, body);
  const written = Buffer.concat([...request.forVendor(target)]).toString();
  const { weight } = request.sizeFor(target);
  expect(weight).toBe(read(style, written).outline.weight);
  return written;
}

const system = { role: "system", content: "A" };
const developer = { role: "developer", content: [{ type: "text", text: "B", x: 1.0 }] };
const user = { role: "user", content: "system developer" };
const assistant = { role: "assistant", content: "yes" };
const late = { role: "system", content: "C" };

/** The messages that a vendor of chat completions gets. */
function chat(turns: readonly object[], quirks: VendorQuirks): readonly unknown[] {
  return JSON.parse(sent(chatCompletions, { model: "m", messages: turns }, quirks)).messages;
}

const refused = { developerRole: "refused" } as const;

describe("a relayed request keeps its bytes (R-TXT-1), but for roles that its vendor refuses (R-TXT-14)", () => {
  it.each([undefined, { lateSystem: "in_place", developerRole: "accepted" } as const])(
    "every byte stays where the vendor has no quirk: %j",
    (quirks) => {
      const body = JSON.stringify({ model: "m", messages: [developer, user, late, developer] });
      expect(sent(chatCompletions, body, quirks)).toBe(body);
    },
  );

  it("the developer is the system, and nothing else changes", () => {
    const body =
      '{ "model":"m", "messages" : [ {"role" : "developer","content":"a \\"role\\":\\"developer\\" 1.50"} , {"content":"developer","role":"user"},{"role":"develop\\u0065r", "content":"b","n":1e400} ] }';
    const expected = body
      .replace('"role" : "developer"', '"role" : "system"')
      .replace(String.raw`"develop\u0065r"`, '"system"');
    expect(sent(chatCompletions, body, refused)).toBe(expected);
    expect(sent(responses, body.replace('"messages"', '"input"'), refused)).toBe(
      expected.replace('"messages"', '"input"'),
    );
  });

  it("late system text is the user's, and what is first is one message", () => {
    const quirks = { lateSystem: "as_user" } as const;
    expect(chat([system, user, late, assistant, developer, user], quirks)).toEqual([
      system,
      user,
      { ...late, role: "user" },
      assistant,
      { ...developer, role: "user" },
      user,
    ]);
    expect(chat([system, developer, user, late], quirks)).toEqual([
      { role: "system", content: [{ type: "text", text: "A" }, ...developer.content] },
      user,
      { ...late, role: "user" },
    ]);
    expect(chat([user, late], quirks)).toEqual([user, { ...late, role: "user" }]);
  });

  it("late system text is at the top, in one message", () => {
    const quirks = { lateSystem: "at_top", ...refused } as const;
    const top = { role: "system", content: "A\n\nC" };
    expect(chat([system, user, late, assistant], quirks)).toEqual([top, user, assistant]);
    expect(chat([user, system, assistant, late], quirks)).toEqual([top, user, assistant]);
    expect(chat([system, late], quirks)).toEqual([top]);
    expect(chat([user, assistant], quirks)).toEqual([user, assistant]);
    expect(chat([developer, user], quirks)).toEqual([{ ...developer, role: "system" }, user]);
  });

  it("ids of calls that the vendor does not take have others, and their results the same", () => {
    const call = (id: string) => ({
      id,
      type: "function",
      function: { name: "f", arguments: "{}" },
    });
    const turns = [
      user,
      { role: "assistant", tool_calls: [call("call_1"), call("abcdefgh9")] },
      { role: "tool", tool_call_id: "call_1", content: "call_1" },
      { role: "tool", tool_call_id: "abcdefgh9", content: "2" },
    ];
    const [, calls, first, second] = chat(turns, { callIds: "alphanumeric_9" }) as {
      tool_calls: { id: string }[];
      tool_call_id: string;
      content: string;
    }[];
    const ids = calls?.tool_calls.map(({ id }) => id);
    expect(ids).toEqual([expect.stringMatching(/^[a-zA-Z0-9]{9}$/), "abcdefgh9"]);
    expect([first?.tool_call_id, second?.tool_call_id]).toEqual(ids);
    expect(first?.content).toBe("call_1");
    expect(chat(turns, { callIds: "unique" })).toEqual(turns);
  });

  it("the conversation is the same but for its system text, whatever its order and white space", () => {
    const turn = fc.constantFrom(system, developer, user, assistant, late);
    const indent = fc.constantFrom(0, 1);
    fc.assert(
      fc.property(fc.array(turn, { minLength: 1, maxLength: 7 }), indent, (turns, spaces) => {
        const body = JSON.stringify({ model: "m", messages: turns, n: 1 }, null, spaces);
        const others = turns.filter(({ role }) => role === "user" || role === "assistant");
        const top = JSON.parse(sent(chatCompletions, body, { lateSystem: "at_top" }));
        expect(top.messages.slice(top.messages.length - others.length)).toEqual(others);
        expect(top.messages.length - others.length).toBeLessThanOrEqual(1);
        const asUser = JSON.parse(sent(chatCompletions, body, { lateSystem: "as_user" }));
        const roles: readonly string[] = asUser.messages.map(({ role }: { role: string }) => role);
        expect(roles.slice(1).join()).not.toMatch(/system|developer/);
        for (const word of ["A", "B", "C"]) {
          const has = turns.some(({ content }) => JSON.stringify(content).includes(`"${word}"`));
          if (!has) continue;
          expect(JSON.stringify(top.messages)).toContain(word);
          expect(JSON.stringify(asUser.messages)).toContain(word);
        }
      }),
    );
  });
});

describe("a relayed request of messages", () => {
  const ask = { model: "m", max_tokens: 9, messages: [user, late, assistant, user] };
  const body = JSON.stringify(ask);

  it.each(["m", "claude-opus-4-8", "claude-opus-5", "somebody-elses"])(
    "keeps late system text where %s may take it",
    (model) => {
      expect(sent(messages, body, undefined, model)).toBe(
        body.replace('"model":"m"', `"model":"${model}"`),
      );
    },
  );

  it.each(["claude-sonnet-4-5", "claude-haiku-4-5", "claude-opus-4-6"])(
    "has late system text as the user's, where %s is known to refuse it: a session can fall back to it",
    (model) => {
      const { messages: turns } = JSON.parse(sent(messages, body, undefined, model));
      expect(turns).toEqual([user, { ...late, role: "user" }, assistant, user]);
      expect(sent(messages, body, { lateSystem: "in_place" }, model)).toContain('"role":"system"');
    },
  );

  it("has late system text at the top, beside the system text there", () => {
    const quirks = { lateSystem: "at_top" } as const;
    const turns = [user, assistant, user];
    expect(JSON.parse(sent(messages, body, quirks))).toEqual({
      ...ask,
      system: "C",
      messages: turns,
    });
    const blocks = [{ type: "text", text: "A", cache_control: { type: "ephemeral" } }];
    expect(JSON.parse(sent(messages, { ...ask, system: blocks }, quirks))).toEqual({
      ...ask,
      system: [...blocks, { type: "text", text: "C" }],
      messages: turns,
    });
    const first = { ...ask, messages: [late, ...ask.messages], system: "A" };
    expect(JSON.parse(sent(messages, first, quirks))).toMatchObject({
      system: "A\n\nC\n\nC",
      messages: turns,
    });
  });
});
