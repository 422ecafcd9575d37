/**
 * R-MON-2: Google's JSON also accepts and returns numbers as strings, so figures that decide about
 * money are read in both forms.
 */
import { describe, expect, it } from "vitest";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import { checkInteractionTools } from "../../../src/dialect/gemini/guard.ts";
import { NativeBody } from "../../../src/native/body.ts";
import { interactionTokens } from "../../../src/provider/gemini/native-jobs.ts";
import { geminiNative } from "../../../src/provider/gemini/native.ts";
import { GeminiMeter } from "../../../src/provider/gemini/meter.ts";
import type { NativeLimits } from "../../../src/provider/native.ts";
import type { TaskUnits } from "../../../src/provider/task.ts";
import { modelOf } from "./task/adapters.ts";

/** Returns the hold of a request. */
function held(
  path: string,
  json: unknown,
  type: ModelType = ModelType.TEXT,
): NativeLimits | TaskUnits {
  const body = Buffer.from(JSON.stringify(json));
  for (const route of geminiNative.routes) {
    const groups = route.method === "POST" ? route.path.exec(path)?.groups : undefined;
    if (groups === undefined) continue;
    const request = new NativeBody({ groups, query: new URLSearchParams(), headers: {}, body });
    if (route.kind === "call") return route.limits(request, modelOf(type), Date.now());
    if (route.kind === "submit") return route.units(request, modelOf(type));
  }
  throw new Error("no route");
}

describe("what is held", () => {
  const generate = "/v1beta/models/gemini-2.5-flash:generateContent";
  const film = "/v1beta/models/veo-3.1:predictLongRunning";

  it.each([4, "4", "4.0", "4e0", " 4"])("candidateCount %j is four replies", (count) => {
    const most = { maxOutputTokens: 100, choices: 4 };
    const figures = { candidateCount: count, maxOutputTokens: "100" };
    expect(held(generate, { generationConfig: figures })).toEqual(most);
    const snaked = { candidate_count: count, max_output_tokens: "1e2" };
    expect(held(generate, { generation_config: snaked })).toEqual(most);
  });

  it.each([0, "0", null])(
    "a call with candidateCount %j is held as one reply",
    (candidateCount) => {
      expect(held(generate, { generationConfig: { candidateCount } })).toMatchObject({
        choices: 1,
      });
    },
  );

  it.each([2, "2"])("sampleCount %j is two films", (sampleCount) => {
    const asked = { instances: [{}], parameters: { sampleCount, durationSeconds: "6" } };
    expect(held(film, asked, ModelType.VIDEO)).toEqual({ seconds: 12 });
  });
});

it("a tool of an interaction without a type is refused, because its calls are not reported", () => {
  expect(() => checkInteractionTools([{ google_search: {} }])).toThrow(/the tool "google_search"/);
  expect(() => checkInteractionTools([{ type: "function", name: "f" }])).not.toThrow();
});

it("counts whose sum is more than a record can hold are charged as the most that it can", () => {
  const most = 2 ** 31 - 1;
  const read = (usageMetadata: object) => {
    const bytes = Buffer.from(JSON.stringify({ usageMetadata }));
    const meter = new GeminiMeter();
    meter.read(bytes, 0, bytes.length);
    return meter.usage;
  };
  expect(
    read({ promptTokenCount: most, toolUsePromptTokenCount: 1, candidatesTokenCount: 1 }),
  ).toMatchObject({ inputTokens: most, outputTokens: 1 });
  expect(
    read({ promptTokenCount: 1, candidatesTokenCount: most, thoughtsTokenCount: 1 }),
  ).toMatchObject({ inputTokens: 1, outputTokens: most });
  expect(
    interactionTokens({
      total_input_tokens: most,
      total_tool_use_tokens: 1,
      total_output_tokens: 1,
    }),
  ).toMatchObject({ inputTokens: most, outputTokens: 1 });
  // Without the input it is no report: the input would be free.
  expect(read({ candidatesTokenCount: 5, totalTokenCount: 9 })).toBeUndefined();
});

it("counts of a reply are charged in both forms, and texts that are none in neither", () => {
  const counts = { promptTokenCount: "12", candidatesTokenCount: "30", thoughtsTokenCount: 5 };
  const meter = new GeminiMeter();
  const bytes = Buffer.from(JSON.stringify({ usageMetadata: counts }));
  meter.read(bytes, 0, bytes.length);
  expect(meter.usage).toMatchObject({ inputTokens: 12, outputTokens: 35, reasoningTokens: 5 });
  const told = interactionTokens({ total_input_tokens: "7", total_output_tokens: "9" });
  expect(told).toMatchObject({ inputTokens: 7, outputTokens: 9 });
  for (const text of ["", "-1", "1.5", "99999999999", "9999999999", "x"]) {
    expect(interactionTokens({ total_input_tokens: text }), text).toBeUndefined();
  }
});
