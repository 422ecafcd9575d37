/** R-TXT-13: what the tables of members promise, the guards keep. */
import { describe, expect, it } from "vitest";
import { ModelType } from "../../../../gen/uas/inference/v1/model_pb.ts";
import type { ModelConfig } from "../../../../src/config/config.ts";
import { GatewayError } from "../../../../src/core/errors.ts";
import { readSpeechBody, speechMembers } from "../../../../src/dialect/operations/audio.ts";
import {
  completionsMembers,
  readCompletionBody,
} from "../../../../src/dialect/operations/completions.ts";
import {
  imagesMembers,
  imagesMultipliers,
  readImagesBody,
  refuseUnpricedImages,
} from "../../../../src/dialect/operations/images.ts";
import type { JsonRecord } from "../../../../src/wire/json/value.ts";
import {
  mediaInput,
  mediaParameters,
  textInput,
  textParameters,
} from "../../../../src/provider/dashscope/members.ts";
import { dashscopeNative } from "../../../../src/provider/dashscope/native.ts";
import type { NativeRequest } from "../../../../src/provider/native.ts";
import { chatMembers } from "../../../../src/dialect/chat-completions/members.ts";
import { chatCompletions } from "../../../../src/dialect/chat-completions/dialect.ts";
import { refuseGeminiMembers } from "../../../../src/dialect/gemini/guard.ts";
import { geminiMembers } from "../../../../src/dialect/gemini/members.ts";
import { namesToCheck } from "../../../../src/dialect/features/member-class.ts";
import { messages } from "../../../../src/dialect/messages/dialect.ts";
import { messagesMembers } from "../../../../src/dialect/messages/members.ts";
import { responses } from "../../../../src/dialect/responses/dialect.ts";
import { responsesMembers } from "../../../../src/dialect/responses/members.ts";

/** Values of which some member makes a request that costs more, or names something stored. */
const values: readonly unknown[] = [
  "something",
  ["audio"],
  [{ type: "url", url: "https://a.test" }],
  {
    ...{ type: "something", id: "something", model: "something", token: "something" },
    ...{ previous_message_id: "something", cyber: "something", enabled: true },
    ...{ edits: [{ type: "something" }] },
  },
  { ttl: "1h" },
  { ttl: "12h" },
];

describe.each([
  { style: chatCompletions, members: chatMembers },
  { style: responses, members: responsesMembers },
  { style: messages, members: messagesMembers },
])("$style.word", ({ style, members }) => {
  it.each(namesToCheck(members))("%s is refused without a price or for good", (name) => {
    const isRefused = (value: unknown): boolean => {
      const body = Buffer.from(JSON.stringify({ model: "m", [name]: value }));
      try {
        style.guard?.(body, { isVerified: false });
        return false;
      } catch {
        return true;
      }
    };
    expect(values.some((value) => isRefused(value))).toBe(true);
  });
});

describe.each([
  {
    operation: "images",
    read: readImagesBody,
    members: { ...imagesMembers, ...imagesMultipliers },
  },
  { operation: "speech", read: readSpeechBody, members: speechMembers },
  { operation: "completions", read: readCompletionBody, members: completionsMembers },
])("$operation", ({ read, members }) => {
  const body = { model: "m", prompt: "A boat", input: "A boat" };
  const readWith = (more: object): unknown =>
    read(Buffer.from(JSON.stringify({ ...body, ...more })));

  it.each(namesToCheck(members))("%s is refused for good, and absent by null", (name) => {
    const all = [2, "svg", { id: "voice_1", model: "m" }, [{ file_id: "file-1" }]];
    const refusals = all.filter((value) => {
      try {
        readWith({ [name]: value });
        return false;
      } catch (error) {
        return error instanceof GatewayError && error.param?.startsWith(name) === true;
      }
    });
    expect(refusals).not.toEqual([]);
    if (!Object.hasOwn(imagesMultipliers, name)) readWith({ [name]: null });
  });
});

it("images by address and ordinary formats of images pass", () => {
  const images = [{ image_url: "https://a.test/file_id.png" }];
  const members = { model: "m", prompt: "A boat", images, mask: images[0], output_format: "png" };
  expect(readImagesBody(Buffer.from(JSON.stringify(members))).images).toBe(1);
});

it("forms with images have neither animations nor SVG", () => {
  for (const [name, value] of [
    ["output_format", "gif"],
    ["output_format", "svg"],
    ["frame_count", "16"],
  ]) {
    expect(() => refuseUnpricedImages((each) => (each === name ? value : undefined))).toThrow(name);
  }
});

it("a voice that OpenAI stores is refused in chat completions, even if audio has a price", () => {
  const refused = { model: "m", audio: { format: "wav", voice: { id: "voice_1" } } };
  const options = { isVerified: false, hasPrice: () => true };
  expect(() => chatCompletions.guard?.(Buffer.from(JSON.stringify(refused)), options)).toThrow(
    "audio.voice",
  );
});

describe("DashScope's own interface", () => {
  const paths = { text: "text-generation/generation", media: "video-generation/video-synthesis" };

  function check(path: string, body: JsonRecord): void {
    const isTask = path === paths.media;
    const headers = isTask ? { "x-dashscope-async": "enable" } : {};
    const route = dashscopeNative.routes.find(
      (each) => each.method === "POST" && each.path.test(`/api/v1/services/aigc/${path}`),
    );
    const request = {
      headers,
      groups: {},
      member: (name: string) => body[name],
      mentions: () => [],
    } as unknown as NativeRequest;
    const model = { type: ModelType.TEXT, maxOutputTokens: 100 } as ModelConfig;
    if (route?.kind === "call") route.limits(request, model, 0);
    else if (route?.kind === "submit") route.units(request, model);
    else throw new Error(`no route for ${path}`);
  }

  const tables = [
    { at: "input", path: paths.text, table: textInput },
    { at: "parameters", path: paths.text, table: textParameters },
    { at: "input", path: paths.media, table: mediaInput },
    { at: "parameters", path: paths.media, table: mediaParameters },
  ];
  const rows = tables.flatMap(({ at, path, table }) =>
    namesToCheck(table).map((name) => ({ at, path, name })),
  );

  it.each(rows)("$at.$name of $path is refused", ({ at, path, name }) => {
    const refused = [true, ["audio"], [{ type: "web_search" }]].filter((value) => {
      try {
        check(path, { [at]: { [name]: value } });
        return false;
      } catch (error) {
        return error instanceof GatewayError && error.param?.startsWith(`${at}.${name}`) === true;
      }
    });
    expect(refused).not.toEqual([]);
    expect(() => check(path, { [at]: { [name]: null } })).not.toThrow();
  });

  it("functions and texts pass", () => {
    const tools = [{ type: "function", function: { name: "f" } }];
    const parameters = { tools, modalities: ["text"], enable_search: false };
    expect(() => check(paths.text, { parameters })).not.toThrow();
  });
});

it.each(["routingConfig", "routing_config", "modelArmorConfig"])(
  "Gemini's own interface refuses %s",
  (name) => {
    expect(() => refuseGeminiMembers((each) => (each === name ? {} : undefined))).toThrow(name);
  },
);

it("Gemini's own interface has nothing against free members", () => {
  const free = Object.keys(geminiMembers).filter(
    (name) => !namesToCheck(geminiMembers).includes(name),
  );
  expect(() => refuseGeminiMembers((name) => (free.includes(name) ? {} : undefined))).not.toThrow();
});
