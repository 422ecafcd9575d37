import { create } from "@bufbuild/protobuf";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Dialect } from "../../../../gen/uas/http/v1/http_pb.ts";
import {
  MediaType,
  ReasoningSealSchema,
  Role,
} from "../../../../gen/uas/inference/v1/conversation_pb.ts";
import { wrapSeal } from "../../../../src/dialect/turns/seal.ts";
import { canonicalBody } from "./arbitrary.ts";
import { decode, encode } from "./support.ts";

const text = (value: string) => ({ kind: { case: "text" as const, value: { text: value } } });

describe("a responses request goes to a responses vendor as it came", () => {
  it("a responses request goes to a responses vendor as it came, whatever it holds (R-TXT-2)", () => {
    fc.assert(
      fc.property(canonicalBody, (body) => {
        const { body: written, dropped } = encode(decode(body), Dialect.RESPONSES);
        expect(written).toEqual(body);
        expect(dropped).toEqual([]);
      }),
      { numRuns: 500, seed: 7 },
    );
  });

  it("a responses request that goes to a responses vendor is read the same again", () => {
    fc.assert(
      fc.property(canonicalBody, (body) => {
        const generation = decode(body);
        expect(decode(encode(generation, Dialect.RESPONSES).body)).toEqual(generation);
      }),
      { numRuns: 200, seed: 7 },
    );
  });
});

describe("a responses request is read", () => {
  it.each(["__proto__", "constructor", "toString"])(
    "a responses request with a part of type %s, which every object has a member of, is refused as any unknown type",
    (type) => {
      const input = [{ type: "message", role: "user", content: [{ type, text: "a" }] }];
      expect(() => decode({ model: "m", input })).toThrow(`"${type}" is not a known type`);
    },
  );

  it("a responses request is read with a plain string as input", () => {
    const { conversation, stream } = decode({ model: "m", input: "hi", instructions: "do" });
    expect(conversation?.turns).toMatchObject([
      { role: Role.SYSTEM, roleWord: "instructions", parts: [text("do")] },
      { role: Role.USER, plain: true, parts: [text("hi")] },
    ]);
    expect(stream).toBe(false);
  });

  it("a responses request is read with messages without a type, and nulls for absent members", () => {
    const input = [
      { role: "user", content: [{ type: "input_text", text: "a" }] },
      { role: "assistant", content: "b", phase: null },
    ];
    const body = {
      model: "m",
      input,
      tools: null,
      reasoning: null,
      temperature: null,
      metadata: null,
    };
    const { conversation, extras } = decode(body);
    expect(conversation?.turns).toMatchObject([
      { role: Role.USER, plain: false },
      { role: Role.ASSISTANT, plain: true, extras: [] },
    ]);
    expect(extras).toEqual([]);
  });

  it("a responses request is read with a sealed reasoning of another style opened (R-TXT-3)", () => {
    const seal = create(ReasoningSealSchema, { dialect: Dialect.MESSAGES, signature: "s==" });
    const encrypted_content = wrapSeal(seal, { text: "thought" });
    const summary = [{ type: "summary_text", text: "shortened by the client" }];
    const input = [{ type: "reasoning", id: "rs_x", summary, encrypted_content }];
    const [turn] = decode({ model: "m", input }).conversation?.turns ?? [];
    expect(turn?.parts[0]?.kind.value).toMatchObject({ text: "thought", summaries: [], seal });
  });

  it("a responses request is read with the bytes of data URLs", () => {
    const image_url = "data:image/png;base64,aGk=";
    const content = [{ type: "input_image", image_url }];
    const [turn] =
      decode({ model: "m", input: [{ role: "user", content }] }).conversation?.turns ?? [];
    expect(turn?.parts[0]?.kind.value).toMatchObject({
      type: MediaType.IMAGE,
      mimeType: "image/png",
      source: { case: "base64", value: "aGk=" },
    });
  });

  it("a responses request is read with the tools of a namespace one by one", () => {
    const inner = { type: "function", name: "run", parameters: null, strict: false };
    const namespace = { type: "namespace", name: "sh", description: "shell", tools: [inner] };
    const { conversation } = decode({ model: "m", input: "x", tools: [namespace] });
    expect(conversation?.tools).toMatchObject([
      {
        namespace: "sh",
        namespaceDescription: "shell",
        kind: { value: { name: "run", strict: false } },
      },
    ]);
  });

  const refused: Array<[string, Record<string, unknown>, string]> = [
    ["no model", { input: "x" }, "model"],
    ["no input", { model: "m" }, "input"],
    ["an empty text as input", { model: "m", input: "" }, "input"],
    ["an empty list as input", { model: "m", input: [] }, "input"],
    ["instructions without input", { model: "m", input: [], instructions: "x" }, "input"],
    ["input that is a number", { model: "m", input: 1 }, "input"],
    ["background", { model: "m", input: "x", background: true }, "background"],
    ["a conversation", { model: "m", input: "x", conversation: "conv_1" }, "conversation"],
    ["a prompt template", { model: "m", input: "x", prompt: { id: "p" } }, "prompt"],
    [
      "a role nobody knows",
      { model: "m", input: [{ role: "tool", content: "x" }] },
      "input[0].role",
    ],
    ["a message without its role", { model: "m", input: [{ content: "x" }] }, "input[0].role"],
    ["no content", { model: "m", input: [{ role: "user" }] }, "input[0].content"],
    [
      "a content type nobody knows",
      { model: "m", input: [{ role: "user", content: [{ type: "image_url" }] }] },
      "input[0].content[0].type",
    ],
    [
      "a call without its id",
      { model: "m", input: [{ type: "function_call", name: "f" }] },
      "input[0].call_id",
    ],
    ["a temperature beyond 2", { model: "m", input: "x", temperature: 3 }, "temperature"],
    ["an output limit of 0", { model: "m", input: "x", max_output_tokens: 0 }, "max_output_tokens"],
    [
      "a format nobody knows",
      { model: "m", input: "x", text: { format: { type: "xml" } } },
      "text.format.type",
    ],
    [
      "a tool without a name",
      { model: "m", input: "x", tools: [{ type: "function" }] },
      "tools[0].name",
    ],
    ["a choice nobody knows", { model: "m", input: "x", tool_choice: "maybe" }, "tool_choice"],
  ];
  for (const [name, body, param] of refused) {
    it(`a responses request with ${name} is a 400 that names the member (R-ERR-7)`, () => {
      expect(() => decode(body)).toThrow(expect.objectContaining({ status: 400, param }));
    });
  }

  it("a responses request may have no input where it continues a response", () => {
    const body = { model: "m", input: [], previous_response_id: "resp_1" };
    expect(decode(body).conversation?.turns).toEqual([]);
  });

  it("a responses request never fails in another way, whatever stands in it", () => {
    const names = [
      "model",
      "input",
      "tools",
      "tool_choice",
      "text",
      "reasoning",
      "include",
      "instructions",
    ];
    const anything = fc.dictionary(fc.constantFrom(...names), fc.jsonValue({ maxDepth: 4 }));
    fc.assert(
      fc.property(anything, (body) => {
        try {
          decode({ model: "m", ...body });
        } catch (error) {
          expect(error).toMatchObject({ status: 400 });
        }
      }),
      { numRuns: 2000, seed: 7 },
    );
  });
});
