/** Spellings that clients of one style really use, and other vendors understand. */
import { describe, expect, it } from "vitest";
import { refusal, send } from "./translation.ts";

const schema = { type: "object", properties: { a: { type: "string" } } };

describe("the older output_format of messages", () => {
  const messages = [{ role: "user", content: "hi" }];
  const output_format = { type: "json_schema", schema };

  it.each(["chat", "responses", "gemini"] as const)("asks %s for the schema", (to) => {
    const older = send({ from: "messages", to }, { messages, output_format });
    expect(JSON.stringify(older.body)).toContain(JSON.stringify(schema));
    const newer = { messages, output_config: { format: output_format } };
    expect(older).toEqual(send({ from: "messages", to }, newer));
  });

  it("the older output_format of messages gives way to output_config.format", () => {
    const newer = { type: "json_schema", schema: { type: "object" } };
    const request = { messages, output_format, output_config: { format: newer } };
    const { body } = send({ from: "messages", to: "chat" }, request);
    expect(body).toMatchObject({ response_format: { json_schema: { schema: newer.schema } } });
  });
});

describe("a refusal that calls its words text", () => {
  const part = { type: "refusal", text: "I will not" };

  it.each(["messages", "gemini"] as const)("reaches %s, from chat and responses", (to) => {
    const turns = [
      { role: "user", content: "do" },
      { role: "assistant", content: [part] },
      { role: "user", content: "why" },
    ];
    for (const sent of [
      send({ from: "chat", to }, { messages: turns }),
      send({ from: "responses", to }, { input: turns }),
    ]) {
      expect(JSON.stringify(sent.body)).toContain(part.text);
    }
  });
});

describe("a text document sent as an octet stream", () => {
  const way = { from: "chat", to: "messages" } as const;
  const request = (filename: string, bytes: Buffer) => {
    const file_data = `data:application/octet-stream;base64,${bytes.toString("base64")}`;
    const content = [{ type: "file", file: { filename, file_data } }];
    return { messages: [{ role: "user", content }] };
  };

  it("reaches messages as its text", () => {
    const { body } = send(way, request("notes.md", Buffer.from("# Grüße")));
    expect(JSON.stringify(body)).toContain('"media_type":"text/plain","data":"# Grüße"');
  });

  it.each([
    ["data.bin", Buffer.from("text")],
    ["notes.md", Buffer.from([0xff, 0xfe])],
    ["notes.md", Buffer.from("a\0b")],
  ])("a file sent as an octet stream is not read as text: %s of %o", (filename, bytes) => {
    expect(refusal(way, request(filename, bytes)).param).toBe("media_type");
  });
});

it("errors of a vendor's codec about the messages name the input of a caller of responses", () => {
  const input = [{ type: "compaction_trigger" }];
  for (const to of ["chat", "messages"] as const) {
    expect(refusal({ from: "responses", to }, { input }).param).toBe("input");
  }
});

describe("reasoning that a client of chat completions kept with its signature", () => {
  const messages = [
    { role: "user", content: "hi" },
    {
      role: "assistant",
      content: "Hello",
      reasoning_content: "A greeting.",
      reasoning_signature: "c2lnbmF0dXJl",
    },
    { role: "user", content: "and now?" },
  ];

  it("returns to messages as the block that it was", () => {
    const { body, dropped } = send({ from: "chat", to: "messages" }, { messages });
    const block = { type: "thinking", thinking: "A greeting.", signature: "c2lnbmF0dXJl" };
    expect(body.messages[1].content[0]).toEqual(block);
    expect(dropped).toEqual([]);
  });

  it.each(["responses", "gemini"] as const)("stays out of %s, which did not seal it", (to) => {
    const { body, dropped } = send({ from: "chat", to }, { messages });
    expect(JSON.stringify(body)).not.toMatch(/A greeting|c2lnbmF0dXJl/);
    expect(dropped).toEqual(["messages.reasoning_content"]);
  });
});

it("a text document sent as an octet stream reaches gemini with the type of its name", () => {
  const file_data = `data:application/octet-stream;base64,${Buffer.from("# a").toString("base64")}`;
  const content = [{ type: "file", file: { filename: "notes.md", file_data } }];
  const request = { messages: [{ role: "user", content }] };
  const { body } = send({ from: "chat", to: "gemini" }, request);
  expect(body.contents[0].parts[0].inlineData.mimeType).toBe("text/markdown");
});
