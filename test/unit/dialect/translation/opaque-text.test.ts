import { describe, expect, it } from "vitest";
import { type Caller, crossings, directions, type Json, send, type Vendor } from "./translation.ts";

const png = "iVBORw0KGgo=";

/** Everything that a vendor's body says, in one text. */
function said(body: unknown): string {
  return JSON.stringify(body);
}

const call = { type: "tool_use", id: "a", name: "f", input: {} };
const question = { role: "user", content: "q" };

/** A conversation of messages that contains a block: of the user, the assistant, or in a result. */
function conversation(place: "user" | "assistant" | "result", ...blocks: readonly Json[]): Json {
  if (place === "user") return { messages: [{ role: "user", content: blocks }, question] };
  if (place === "assistant") {
    return { messages: [question, { role: "assistant", content: blocks }, question] };
  }
  const result = { type: "tool_result", tool_use_id: "a", content: blocks };
  return {
    messages: [
      question,
      { role: "assistant", content: [call] },
      { role: "user", content: [result] },
    ],
  };
}

const text = (value: string): Json => ({ type: "text", text: value });

/** Each block with the texts that another vendor's model must read, and what it must not get. */
const blocks: readonly (readonly [string, Parameters<typeof conversation>, readonly string[]])[] = [
  [
    "a reference to a tool in a result",
    ["result", { type: "tool_reference", tool_name: "get_weather" }],
    ["get_weather", "available"],
  ],
  [
    "a search result of the user",
    [
      "user",
      {
        type: "search_result",
        source: "https://a.test",
        title: "A title",
        content: [text("first"), text("second")],
        citations: { enabled: true },
      },
    ],
    ["https://a.test", "A title", "first", "second"],
  ],
  [
    "a search result in a result",
    ["result", { type: "search_result", source: "s", title: "A title", content: [text("found")] }],
    ["A title", "found"],
  ],
  [
    "a document in blocks",
    [
      "user",
      {
        type: "document",
        title: "A title",
        source: {
          type: "content",
          content: [
            text("page 1"),
            { type: "image", source: { type: "base64", media_type: "image/jpg", data: png } },
            text("page 2"),
          ],
        },
      },
    ],
    ["A title", "page 1", "page 2", png],
  ],
  [
    "a search of the vendor and its result",
    [
      "assistant",
      { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "cats" } },
      {
        type: "web_search_tool_result",
        tool_use_id: "srvtoolu_1",
        content: [
          {
            type: "web_search_result",
            title: "Cats",
            url: "https://c.test",
            encrypted_content: "X9",
          },
        ],
      },
    ],
    ["web_search", "cats", "Cats", "https://c.test"],
  ],
  [
    "a page that the vendor fetched",
    [
      "assistant",
      {
        type: "web_fetch_tool_result",
        tool_use_id: "srvtoolu_1",
        content: {
          type: "web_fetch_result",
          url: "https://c.test",
          content: {
            type: "document",
            source: { type: "text", media_type: "text/plain", data: "the page" },
          },
        },
      },
    ],
    ["https://c.test", "the page"],
  ],
  [
    "a run of code",
    [
      "assistant",
      {
        type: "bash_code_execution_tool_result",
        tool_use_id: "srvtoolu_1",
        content: {
          type: "bash_code_execution_result",
          stdout: "out",
          stderr: "err",
          return_code: 1,
          content: [{ type: "bash_code_execution_output", file_id: "file_9" }],
        },
      },
    ],
    ["out", "err"],
  ],
  [
    "a failed search",
    [
      "assistant",
      {
        type: "web_search_tool_result",
        tool_use_id: "srvtoolu_1",
        content: { type: "web_search_tool_result_error", error_code: "max_uses_exceeded" },
      },
    ],
    ["max_uses_exceeded"],
  ],
  [
    "the tools that a search of tools found",
    [
      "assistant",
      {
        type: "tool_search_tool_result",
        tool_use_id: "srvtoolu_1",
        content: {
          type: "tool_search_tool_search_result",
          tool_references: [{ type: "tool_reference", tool_name: "get_weather" }],
        },
      },
    ],
    ["get_weather"],
  ],
  [
    "a call of an MCP server and its result",
    [
      "assistant",
      {
        type: "mcp_tool_use",
        id: "mcptoolu_1",
        name: "read",
        server_name: "files",
        input: { p: 1 },
      },
      {
        type: "mcp_tool_result",
        tool_use_id: "mcptoolu_1",
        is_error: false,
        content: [text("it")],
      },
    ],
    ["files", "read", "it"],
  ],
  [
    "the summary of a compaction",
    ["assistant", { type: "compaction", content: "We met.", encrypted_content: "X9" }],
    ["We met."],
  ],
  [
    "a block that is not known yet",
    ["assistant", { type: "dream_result", content: { text: "a dream" }, signature: "X9" }],
    ["a dream"],
  ],
];

const vendors = ["chat", "responses", "gemini"] as const;

describe("content that only messages know is text for other vendors (R-TXT-2)", () => {
  for (const [what, [place, ...given], texts] of blocks) {
    it.each(vendors)(`${what} goes to %s as its text`, (to) => {
      const { body, dropped } = send({ from: "messages", to }, conversation(place, ...given));
      for (const each of texts) expect(said(body)).toContain(each);
      expect(said(body)).not.toMatch(/X9|srvtoolu|file_9|image\/jpg/);
      expect(dropped).toEqual([]);
    });
  }

  it.each(vendors)("a call that a program made goes to %s as a call with its result", (to) => {
    const caller = { type: "code_execution_20260120", tool_id: "srvtoolu_1" };
    const messages = [
      question,
      { role: "assistant", content: [{ ...call, input: { city: "Rome" }, caller }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "a", content: "sunny" }] },
    ];
    const { body } = send({ from: "messages", to }, { messages });
    expect(said(body)).toContain("Rome");
    expect(said(body)).toContain("sunny");
  });

  it.each(vendors)("what no other vendor can use is left out for %s, and named", (to) => {
    const upload = { type: "container_upload", file_id: "file_9" };
    const user = send({ from: "messages", to }, conversation("user", upload, text("hi")));
    expect(user.dropped).toEqual(["container_upload"]);
    const listing = { type: "mcp_tool_listing", mcp_server_name: "s", tools: [] };
    const fallback = { type: "fallback", from: { model: "a" }, to: { model: "b" } };
    const { body, dropped } = send(
      { from: "messages", to },
      conversation("assistant", listing, fallback, text("hello")),
    );
    expect(dropped).toEqual(["mcp_tool_listing", "fallback"]);
    expect(said(body)).toContain("hello");
  });
});

/** Items of responses, with the texts that another vendor's model must read. */
const items: readonly (readonly [string, Json, readonly string[]])[] = [
  [
    "a search",
    { type: "web_search_call", id: "ws_1", action: { type: "search", query: "cats" } },
    ["cats"],
  ],
  [
    "a search in files",
    {
      type: "file_search_call",
      id: "fs_1",
      queries: ["cats"],
      results: [{ file_id: "file_9", filename: "a.txt", text: "meow" }],
    },
    ["cats", "a.txt", "meow"],
  ],
  [
    "a run of code",
    {
      type: "code_interpreter_call",
      id: "ci_1",
      container_id: "cntr_1",
      code: "print(1)",
      outputs: [{ type: "logs", logs: "one" }],
    },
    ["print(1)", "one"],
  ],
  [
    "a call of an MCP server",
    {
      type: "mcp_call",
      id: "mcp_1",
      server_label: "files",
      name: "read",
      arguments: '{"p":1}',
      output: "it",
    },
    ["files", "read", "it"],
  ],
  [
    "a command of a shell",
    { type: "local_shell_call", id: "sh_1", call_id: "c", action: { command: ["ls", "-l"] } },
    ["ls", "-l"],
  ],
];

describe("calls of tools that only responses know are text for other vendors (R-TXT-2)", () => {
  const others = ["chat", "messages", "gemini"] as const satisfies readonly Vendor[];
  for (const [what, item, texts] of items) {
    it.each(others)(`${what} goes to %s as its text`, (to) => {
      const input = [question, item, question];
      const { body, dropped } = send({ from: "responses", to }, { input });
      for (const each of texts) expect(said(body)).toContain(each);
      expect(said(body)).not.toMatch(/file_9|cntr_1|ws_1/);
      expect(dropped).toEqual([]);
    });
  }

  it.each(others)("an image that the vendor made is left out for %s, and named", (to) => {
    const item = { type: "image_generation_call", id: "ig_1", result: png, revised_prompt: "x" };
    const { body, dropped } = send(
      { from: "responses", to },
      { input: [question, item, question] },
    );
    expect(dropped).toEqual(["image_generation_call"]);
    expect(said(body)).not.toContain(png);
  });
});

const same: Readonly<Partial<Record<Caller, Json>>> = {
  messages: conversation("result", { type: "tool_reference", tool_name: "x" }),
};

crossings(
  "opaque parts: a result that is nothing but a reference is its text",
  directions
    .filter(({ from, to }) => from === "messages" && to === "chat")
    .map((way) => ({
      ...way,
      given: same[way.from] ?? {},
      sent: { messages: [{}, {}, { role: "tool", content: 'The tool "x" is available.' }] },
    })),
);
