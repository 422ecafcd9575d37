/** Tool calls through the official SDK, whole and streamed. */
import { expect, it } from "vitest";
import { answer } from "../../../support/upstream/behaviour.ts";
import { ask, publicModel, useGateway } from "../../harness.ts";

const fixture = useGateway();

const toolCalls = [
  { id: "call_a", name: "weather", arguments: '{"city":"Bern"}' },
  { id: "call_b", name: "weather", arguments: '{"city":"Köln"}' },
];

const tools = (asked: string[]) => [
  {
    type: "function" as const,
    function: {
      name: "weather",
      description: "Weather of a city",
      parameters: { type: "object" as const, properties: { city: { type: "string" as const } } },
      parse: (text: string) => JSON.parse(text) as { city: string },
      function: ({ city }: { city: string }) => {
        asked.push(city);
        return `sunny in ${city}`;
      },
    },
  },
];

it("the SDK's tool loop runs to its end", async () => {
  const asked: string[] = [];
  fixture.upstream.script(answer({ text: [], toolCalls }), answer({ text: ["Sunny."] }));
  const runner = fixture.openai.chat.completions.runTools({ ...ask, tools: tools(asked) });
  expect(await runner.finalContent()).toBe("Sunny.");
  expect(asked.toSorted()).toEqual(["Bern", "Köln"]);
  expect(fixture.upstream.requests).toHaveLength(2);
});

it("the SDK's tool loop runs over streams, with parallel calls in pieces", async () => {
  const asked: string[] = [];
  fixture.upstream.script(
    answer({ text: [], toolCalls, pieceBytes: 5 }),
    answer({ text: ["Sunny", "."], pieceBytes: 11 }),
  );
  const runner = fixture.openai.chat.completions.runTools({
    model: publicModel,
    messages: ask.messages,
    stream: true,
    tools: tools(asked),
  });
  expect(await runner.finalContent()).toBe("Sunny.");
  expect(asked.toSorted()).toEqual(["Bern", "Köln"]);
});
