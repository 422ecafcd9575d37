import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { chatCompletions } from "../../../../src/dialect/chat-completions/dialect.ts";

/** Passes a stream in the given pieces. */
function relayed(
  stream: string,
  options: { model?: string; hide?: boolean; cuts?: number[]; choices?: number } = {},
) {
  const relay = chatCompletions.relayStream({
    publicModel: options.model,
    hideUsage: options.hide ?? false,
    choices: options.choices ?? 1,
  });
  const bytes = Buffer.from(stream);
  const cuts = [...(options.cuts ?? []), bytes.length].map((cut) => cut % (bytes.length + 1));
  const out: Buffer[] = [];
  let start = 0;
  for (const cut of cuts.toSorted((a, b) => a - b)) {
    // A fresh copy for each piece, as sockets deliver them.
    out.push(relay.push([Buffer.from(bytes.subarray(start, cut))]));
    start = cut;
  }
  out.push(relay.push([bytes.subarray(start)]));
  return { text: Buffer.concat(out).toString(), relay };
}

const event = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;
const usage = { prompt_tokens: 9, completion_tokens: 4, total_tokens: 13 };
const chunk = (delta: unknown, extra: object = {}) => ({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  created: 1,
  model: "vendor-model",
  choices: [{ index: 0, delta, finish_reason: null }],
  ...extra,
});
const done = "data: [DONE]\n\n";

/** Anything a vendor may send: known and unknown members, odd texts, usage at any place. */
const anyChunk = fc
  .record({
    before: fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 3 }),
    content: fc.string({ unit: "grapheme" }),
    after: fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 3 }),
    usage: fc.constantFrom(undefined, null, usage),
    model: fc.constantFrom(undefined, null, "vendor-model", 'odd "\\ name'),
    usageFirst: fc.boolean(),
  })
  .map(({ before, content, after, usage: counted, model, usageFirst }) => ({
    ...(usageFirst && counted !== undefined ? { usage: counted } : {}),
    ...before,
    ...(model === undefined ? {} : { model }),
    choices: [{ index: 0, delta: { content } }],
    ...after,
    ...(!usageFirst && counted !== undefined ? { usage: counted } : {}),
  }));

describe("R-TXT-1: a stream in the vendor's own dialect passes byte for byte", () => {
  it("a stream in the vendor's own dialect passes byte for byte, however it is cut and whatever it holds", () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.oneof(
            anyChunk.map(event),
            fc.constant(": comment\n\n"),
            fc.constant("event: x\ndata: {}\n\n"),
          ),
        ),
        fc.array(fc.nat(), { maxLength: 12 }),
        fc.constantFrom("\n", "\r\n", "\r"),
        (events, cuts, newline) => {
          // Another event must follow a lone CR before its end is certain.
          const reply = `${event(chunk({ content: "" }))}${events.join("")}${done}`.replaceAll(
            "\n",
            newline,
          );
          const { text } = relayed(`${reply}: end${newline}${newline}`, { cuts });
          expect(reply.startsWith(text)).toBe(true);
          expect(reply.length - text.length).toBeLessThanOrEqual(newline === "\r" ? 1 : 0);
        },
      ),
      { numRuns: 300 },
    );
  });

  it("a stream in the vendor's own dialect passes unchanged but for the model name and the usage that only the gateway asked for", () => {
    fc.assert(
      fc.property(
        fc.array(anyChunk, { minLength: 1, maxLength: 6 }),
        fc.array(fc.nat(), { maxLength: 9 }),
        (chunks, cuts) => {
          const { text } = relayed(chunks.map(event).join("") + done, {
            model: "public",
            hide: true,
            cuts,
          });
          const expected = chunks.map((each) => {
            const kept: Record<string, unknown> = { ...each };
            if (typeof kept["model"] === "string") kept["model"] = "public";
            if (kept["usage"] === null) delete kept["usage"];
            return event(kept);
          });
          expect(text).toBe(expected.join("") + done);
        },
      ),
      { numRuns: 500 },
    );
  });

  it("keeps the spelling of numbers, duplicate members and white space", () => {
    const odd =
      'data: { "a" : 2.50 , "a":1e400, "model" : "vendor-model" , "big":12345678901234567890 , "usage" : null }\n\n';
    expect(relayed(odd, { model: "public", hide: true }).text).toBe(
      'data: { "a" : 2.50 , "a":1e400, "model" : "public" , "big":12345678901234567890  }\n\n',
    );
  });

  it("leaves what only looks like usage or a model: in strings and deeper down", () => {
    const stream = event(
      chunk({ content: '"usage":null,"model":"x"' }, { deep: { usage: null, model: "m" } }),
    );
    const { text } = relayed(stream, { model: "vendor-model", hide: true });
    expect(text).toBe(stream);
  });
});

describe("R-MON-8: what a stream consumed", () => {
  it("is read from the usage chunk, which a client that did not ask never sees", () => {
    const stream =
      event(chunk({ content: "hi" }, { usage: null })) +
      event({ ...chunk({}), choices: [], usage }) +
      done;
    const hidden = relayed(stream, { hide: true });
    expect(hidden.text).toBe(event(chunk({ content: "hi" })) + done);
    expect(hidden.relay.usage).toMatchObject({ inputTokens: 9, outputTokens: 4 });
    expect(relayed(stream).text).toBe(stream);
  });

  it("is estimated by the text of deltas: content, reasoning, tool arguments, refusals", () => {
    const deltas = [
      { role: "assistant", content: "" },
      { content: "abcd" },
      { reasoning_content: "efg" },
      { tool_calls: [{ index: 0, function: { arguments: '{"a":1}' } }] },
    ];
    const { relay } = relayed(deltas.map((delta) => event(chunk(delta))).join(""));
    // Bytes as they stand on the wire: quotes in arguments with their backslashes. The role is no
    // text.
    expect(relay.textBytes).toBe(4 + 3 + '{\\"a\\":1}'.length);
  });

  it("reasoning that the vendor counts beside the completion, as its total says, is output", () => {
    const counted = {
      prompt_tokens: 32,
      completion_tokens: 9,
      total_tokens: 135,
      completion_tokens_details: { reasoning_tokens: 94 },
    };
    const usageOf = (counts: object) => relayed(event({ choices: [], usage: counts })).relay.usage;
    expect(usageOf(counted)).toMatchObject({ outputTokens: 103, reasoningTokens: 94 });
    // Another total, or none: the reasoning is among the completion, as with OpenAI.
    const among = { outputTokens: 9, reasoningTokens: 9 };
    expect(usageOf({ ...counted, total_tokens: 41 })).toMatchObject(among);
    expect(usageOf({ ...counted, total_tokens: undefined })).toMatchObject(among);
  });

  it("splits cached and written input off, and distrusts impossible figures", () => {
    const counted = {
      prompt_tokens: 10,
      completion_tokens: 2,
      prompt_tokens_details: { cached_tokens: 8, cache_write_tokens: 50 },
      completion_tokens_details: { reasoning_tokens: 1 },
    };
    const { relay } = relayed(event({ choices: [], usage: counted }));
    expect(relay.usage).toMatchObject({
      cachedInputTokens: 8,
      cacheWriteTokens: 2,
      reasoningTokens: 1,
    });
    for (const bad of [
      { prompt_tokens: -1, completion_tokens: 1 },
      { prompt_tokens: 1.5, completion_tokens: 1 },
      {},
      "x",
    ]) {
      expect(relayed(event({ choices: [], usage: bad })).relay.usage).toBeUndefined();
    }
  });
});

describe("R-ERR-6: how a stream ended", () => {
  it("is finished with a finish reason, done with [DONE], neither when cut", () => {
    const open = event(chunk({ content: "a" }));
    const finish = event({
      ...chunk({}),
      choices: [{ index: 0, delta: {}, finish_reason: "stop" }],
    });
    expect(relayed(open).relay).toMatchObject({ finished: false, done: false });
    expect(relayed(open + finish).relay).toMatchObject({ finished: true, done: false });
    expect(relayed(open + finish + done).relay).toMatchObject({ finished: true, done: true });
  });

  it("is not finished by an empty reason, nor before all choices are", () => {
    const reason = (index: number, finish_reason: string) =>
      event({ ...chunk({}), choices: [{ index, delta: {}, finish_reason }] });
    expect(relayed(reason(0, "")).relay.finished).toBe(false);
    expect(relayed(reason(0, "stop"), { choices: 2 }).relay.finished).toBe(false);
    expect(relayed(reason(0, "stop") + reason(1, "length"), { choices: 2 }).relay.finished).toBe(
      true,
    );
  });

  it("gives out the last event also without its empty line, but not one that was cut", () => {
    const whole = relayed(`${event(chunk({ content: "a" }))}data: [DONE]`);
    expect(whole.relay.end().toString()).toBe("data: [DONE]\n\n");
    expect(whole.relay.done).toBe(true);
    const cut = relayed(event(chunk({ content: "a" })).slice(0, -20));
    expect(cut.relay.end().toString()).toBe("");
    expect(relayed('data: {"choices":[]}\n').relay.end().toString()).toBe(
      'data: {"choices":[]}\n\n',
    );
  });

  it("ends with the error frame: no terminal event behind it", () => {
    const error = event({ error: { message: "x", type: "t", code: "c" } });
    expect(relayed(error + done).text).toBe(error);
  });

  it("is failed with an error frame; a null error is none", () => {
    expect(relayed(event({ error: { message: "x" } })).relay.failed).toBe(true);
    expect(relayed(event(chunk({ content: "a" }, { error: null }))).relay.failed).toBe(false);
  });
});

describe("R-TXT-1: whole replies", () => {
  const reply = (extra: object) =>
    Buffer.from(
      JSON.stringify({
        id: "x",
        model: "vendor-model",
        choices: [
          { index: 0, message: { role: "assistant", content: "hello" }, finish_reason: "stop" },
        ],
        ...extra,
      }),
    );

  it("restore the model name and report usage", () => {
    const {
      body,
      usage: told,
      textBytes,
    } = chatCompletions.relayReply(reply({ usage }), {
      publicModel: "public/é",
      hideUsage: false,
      choices: 1,
    });
    expect(body.toString()).toBe(
      reply({ usage }).toString().replace('"vendor-model"', '"public/é"'),
    );
    expect(told).toMatchObject({ inputTokens: 9 });
    expect(textBytes).toBe("hello".length);
  });
});

describe("inputs of calls that come twice", () => {
  const call = (piece: string, more: object = {}) =>
    chunk({ tool_calls: [{ index: 0, ...more, function: { arguments: piece } }] });
  const head = { id: "call_1", type: "function" };
  const pieces = [call("", head), call('{"path":'), call('"a\\n"}')].map(event).join("");

  it.each([
    ["with its id", call('{"path":"a\\n"}', head)],
    ["without its id", call('{"path":"a\\n"}')],
    ["with other white space", call('{ "path" : "a\\n" }')],
  ])("the whole input behind its pieces is taken out: %s", (_form, again) => {
    const { text } = relayed(pieces + event(again) + done, { model: "public" });
    const all = text.split("\n\n").filter((each) => each.startsWith("data: {"));
    const inputs = all.map((each) => {
      const { model, choices } = JSON.parse(each.slice(6));
      expect(model).toBe("public");
      return choices[0].delta.tool_calls[0].function.arguments as string;
    });
    expect(inputs.join("")).toBe('{"path":"a\\n"}');
    expect(text.endsWith(done)).toBe(true);
  });

  it.each([
    [
      "another call of the same input",
      call('{"path":"a\\n"}', { ...head, id: "call_2", index: 1 }),
    ],
    ["another id at the same index", call('{"path":"a\\n"}', { ...head, id: "call_2" })],
    ["another input", call('{"path":"b"}')],
  ])("all other bytes stay: %s", (_form, again) => {
    const stream = pieces + event(again) + done;
    expect(relayed(stream).text).toBe(stream);
  });

  it("an equal input of another call in the same event stays", () => {
    const text = '{"path":"a\\n"}';
    const other = { index: 1, id: "call_2", type: "function", function: { arguments: text } };
    const again = chunk({ tool_calls: [{ index: 0, function: { arguments: text } }, other] });
    const got = relayed(pieces + event(again) + done).text;
    const last =
      got
        .split("\n\n")
        .filter((each) => each.startsWith("data: {"))
        .at(-1) ?? "";
    const calls = JSON.parse(last.slice(6)).choices[0].delta.tool_calls;
    expect(
      calls.map((each: { function: { arguments: string } }) => each.function.arguments),
    ).toEqual(["", text]);
  });
});
