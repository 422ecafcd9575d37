/**
 * Errors that vendors report in streams and whole bodies of the caller's own style (R-ERR-1,
 * R-ERR-3, R-ERR-4).
 */
import { describe, expect, it } from "vitest";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { ErrorCode, GatewayError } from "../../../src/core/errors.ts";
import { textDialects } from "../../../src/dialect/index.ts";
import type { TextDialect } from "../../../src/dialect/dialect.ts";
import { relayed } from "./relaying.ts";

const [chat, responses, messages] = [
  Dialect.CHAT_COMPLETIONS,
  Dialect.RESPONSES,
  Dialect.MESSAGES,
].map((dialect) => textDialects.get(dialect) as TextDialect) as [
  TextDialect,
  TextDialect,
  TextDialect,
];

const data = (json: unknown, name = ""): string =>
  `${name === "" ? "" : `event: ${name}\n`}data: ${JSON.stringify(json)}\n\n`;

const beginnings: readonly (readonly [string, TextDialect, string])[] = [
  ["nothing", chat, ""],
  ["nothing", responses, ""],
  ["nothing", messages, ""],
  ["comments and pings", chat, ": ping\n\n"],
  ["comments and pings", messages, ': x\n\nevent: ping\ndata: {"type":"ping"}\n\n'],
  ["its start", chat, data({ choices: [{ index: 0, delta: { role: "assistant", content: "" } }] })],
  ["its start", responses, data({ type: "response.created", response: { id: "resp_1" } })],
  [
    "its start",
    messages,
    data({ type: "message_start", message: { content: [], usage: { input_tokens: 9 } } }),
  ],
];

const chatErrors: readonly unknown[] = [
  { error: { message: "oops", type: "server_error", code: "server_error" } },
  { error: { message: "oops", type: null, code: null } },
  { error: { message: "oops", code: 502 }, choices: [{ delta: {}, finish_reason: "error" }] },
  { object: "error", message: "oops", type: "InternalServerError", code: 500 },
  { error: "oops" },
  { choices: [{ index: 0, delta: { content: "" }, finish_reason: "error" }] },
];
const responsesErrors: readonly unknown[] = [
  { type: "error", code: "server_error", message: "oops", param: null },
  { type: "error", code: null, message: "oops", param: null },
  { type: "error", error: { type: null, code: 500, message: "oops" } },
  { type: "error", sequence_number: 3, error: { message: "oops" } },
  { type: "response.failed", response: { error: { code: null, message: "oops" }, output: [] } },
  { error: { message: "oops" } },
];
const messagesErrors: readonly unknown[] = [
  { type: "error", error: { type: "api_error", message: "oops" } },
  { type: "error", error: { type: null, message: "oops" } },
  { type: "error", error: { message: "oops", code: 500 } },
  { error: { message: "oops", type: "server_error" } },
  { type: "error", message: "oops" },
];
const errors: readonly (readonly [TextDialect, unknown])[] = [
  ...chatErrors.map((each) => [chat, each] as const),
  ...responsesErrors.map((each) => [responses, each] as const),
  ...messagesErrors.map((each) => [messages, each] as const),
];

/** Every event with an error in a relayed stream. */
function errorsIn(text: string): Readonly<Record<string, unknown>>[] {
  return [...text.matchAll(/^data: (\{.*)$/gm)]
    .map(([, json = ""]) => JSON.parse(json) as Readonly<Record<string, unknown>>)
    .filter((each) => /error|failed/.test(JSON.stringify(each)));
}

function objectIn(value: unknown, name: string): Readonly<Record<string, unknown>> | undefined {
  const found = (value as Readonly<Record<string, unknown>> | undefined)?.[name];
  return typeof found === "object" && found !== null
    ? (found as Readonly<Record<string, unknown>>)
    : undefined;
}

describe("an error event before the first content", () => {
  it.each(
    beginnings.flatMap(([name, style, before]) =>
      errors
        .filter(([of]) => of === style)
        .map(([, error]) => [name, style, before, error] as const),
    ),
  )("fails the stream without any text, behind %s: %o", (_name, style, before, error) => {
    const type = (error as { type?: string }).type;
    const named = style === chat ? "" : (type ?? "error");
    for (const cuts of [[], [before.length + 7], [before.length + 30]]) {
      const { relay, text } = relayed(style, before + data(error, named), { cuts });
      expect([relay.failed, relay.textBytes, relay.done]).toEqual([true, 0, false]);
      const [shown] = errorsIn(text);
      const inner =
        objectIn(shown, "error") ?? objectIn(objectIn(shown, "response"), "error") ?? shown;
      if (style === messages) expect(typeof inner?.["type"]).toBe("string");
      else
        expect([inner?.["code"], inner?.["message"]]).toEqual([
          expect.any(String),
          expect.any(String),
        ]);
      if (style === chat) expect(typeof inner?.["type"]).toBe("string");
    }
  });

  it.each([
    [
      chat,
      data({
        error: {
          message: "You exceeded your current quota",
          type: "insufficient_quota",
          code: "insufficient_quota",
        },
      }),
    ],
    [
      chat,
      data({ error: { message: "Incorrect API key provided: sk-1", code: "invalid_api_key" } }),
    ],
    [
      responses,
      data(
        {
          type: "error",
          code: "insufficient_quota",
          message: "You exceeded your current quota, please check your plan",
        },
        "error",
      ) +
        data(
          {
            type: "response.failed",
            response: {
              error: { code: "insufficient_quota", message: "You exceeded your current quota" },
            },
          },
          "response.failed",
        ),
    ],
    [
      responses,
      data(
        {
          type: "response.failed",
          response: {
            error: { code: "insufficient_quota", message: "You exceeded your current quota" },
          },
        },
        "response.failed",
      ),
    ],
    [
      messages,
      data(
        {
          type: "error",
          error: { type: "authentication_error", message: "invalid x-api-key quota" },
        },
        "error",
      ),
    ],
    [
      messages,
      data(
        {
          type: "error",
          error: { type: "billing_error", message: "Your credit balance is too low quota" },
        },
        "error",
      ),
    ],
  ] as const)("shows nothing of the operator's account (R-ERR-3): %#", (style, sent) => {
    const { relay, text } = relayed(style, sent);
    expect(relay.failed).toBe(true);
    expect(text).not.toMatch(/quota|sk-1|credit|api.key/i);
    expect(text).toContain("temporarily out of service");
    expect(errorsIn(text)).toHaveLength(1);
  });

  it("an error that the vendor wrote as the style demands passes byte for byte", () => {
    const own = [
      [chat, data({ error: { message: "é", type: "t", code: "c", more: [1.1, 1e2] } })],
      [responses, data({ type: "error", code: "c", message: "é", param: null }, "error")],
      [messages, data({ type: "error", error: { type: "t", message: "é" }, x: 1 }, "error")],
    ] as const;
    for (const [style, sent] of own) expect(relayed(style, sent).text).toBe(sent);
  });
});

describe("events behind the end of a reply", () => {
  const end = {
    chat:
      data({ choices: [{ index: 0, delta: { content: "a" }, finish_reason: "stop" }] }) +
      "data: [DONE]\n\n",
    responses: data(
      { type: "response.completed", response: { id: "r", output: [] } },
      "response.completed",
    ),
    messages: data({ type: "message_stop" }, "message_stop"),
  };
  it.each([
    [chat, end.chat, data({ choices: [{ index: 0, delta: { content: "late" } }] })],
    [responses, end.responses, data({ type: "response.output_text.delta", delta: "late" }, "x")],
    [messages, end.messages, data({ type: "content_block_delta", delta: { text: "late" } }, "x")],
  ] as const)("are not relayed: %#", (style, sent, late) => {
    for (const cuts of [[], [sent.length], [sent.length + 9]]) {
      expect(relayed(style, sent + late + late, { cuts }).text).toBe(sent);
    }
  });
});

describe("a refusal of the same style", () => {
  const refused = new GatewayError(ErrorCode.INVALID_REQUEST, "refused");
  it.each([
    [
      '{"error":{"message":"no","type":null,"code":null,"param":"x"}}',
      '{"error":{"message":"no","type":"invalid_request_error","code":"invalid_request","param":"x"}}',
    ],
    [
      '{ "error" : {"code": 400, "message":"n\\u006f" , "big": 2512292042121000001} }',
      '{ "error" : {"code": "invalid_request", "message":"n\\u006f" , "big": 2512292042121000001,"type":"invalid_request_error"} }',
    ],
    [
      '{"error":{"message":"no"}}',
      '{"error":{"message":"no","type":"invalid_request_error","code":"invalid_request"}}',
    ],
    [
      '{"error":{"message":"no","type":"","code":"own"}}',
      '{"error":{"message":"no","type":"invalid_request_error","code":"own"}}',
    ],
    [
      '{"error":{"message":"no","type":"t","code":"c"}, "id": 1}',
      '{"error":{"message":"no","type":"t","code":"c"}, "id": 1}',
    ],
  ])("has strings where the style promises them, and every other byte stays: %s", (sent, got) => {
    for (const style of [chat, responses]) {
      expect(style.relayError(Buffer.from(sent), refused)?.toString()).toBe(got);
    }
  });

  it.each([
    '{"error":"no"}',
    '{"error":["no"]}',
    '{"error":null}',
    '{"detail":"no"}',
    '{"message":"no"}',
    "[]",
    '{"error":{}}',
  ])("in another form is written anew: %s", (sent) => {
    for (const style of [chat, responses, messages]) {
      expect(style.relayError(Buffer.from(sent), refused)).toBeUndefined();
    }
  });

  it("of messages has its type as a string", () => {
    const sent = '{"type":"error","error":{"type":null,"message":"no"},"request_id":"r"}';
    expect(messages.relayError(Buffer.from(sent), refused)?.toString()).toBe(
      sent.replace("null", '"invalid_request_error"'),
    );
  });
});
