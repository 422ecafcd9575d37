/** The settings of a model for its tasks. */
import { describe, expect, it } from "vitest";
import { CancelBilling } from "../../../gen/uas/inference/v1/model_pb.ts";
import { allKinds, loadText } from "./support.ts";

const file = (more: string): string => `version: 1
vendors: { v: { kind: openai-compatible, base_url: "https://v.test" } }
models: { m: { type: TEXT, routes: [{ vendor: v, model: x }], max_output_tokens: 9, price: { input: 1, output: 2 }${more} } }
`;

describe("a model with", () => {
  it.each([
    ["", undefined],
    [", deadline: 90s", 90_000],
    [", deadline: 24h", 86_400_000],
  ])("a model with %j gives its tasks a deadline of %d ms", (more, ms) => {
    expect(loadText(file(more), { kinds: allKinds }).models.get("m")?.deadlineMs).toBe(ms);
  });

  it.each([
    ["", undefined],
    [", min_seconds: 8", 8],
  ])("a model with %j has results of at least %j seconds", (more, seconds) => {
    const audio = file(more).replace("TEXT", "AUDIO").replace("input: 1, output: 2", "second: 1");
    expect(loadText(audio, { kinds: allKinds }).models.get("m")?.minSeconds).toBe(seconds);
  });

  it.each([
    ["", CancelBilling.UPSTREAM],
    [", cancel_billing: none", CancelBilling.NONE],
    [", cancel_billing: upstream", CancelBilling.UPSTREAM],
  ])("a model with %j bills cancelled tasks by %j", (more, billing) => {
    const { models } = loadText(file(more), { kinds: allKinds });
    expect(models.get("m")?.cancelBilling).toBe(billing);
  });
});
