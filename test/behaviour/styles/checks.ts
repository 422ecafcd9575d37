/** Features that every client must have at every target, in any pair of styles. */
import { deflateSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { describeBytes, greeting, thoughts, tokens } from "../../support/upstream/scenario.ts";
import type { Client, ClientRow, ClientStyle, Feature } from "./clients/client.ts";

/** The style that a vendor speaks. */
export type VendorStyle = ClientStyle | "gemini";

/** A client at a target, when the tests run. */
export interface Pair {
  readonly row: ClientRow;
  readonly vendor: VendorStyle;
  /** Whether a gateway stands between: errors carry its codes. */
  readonly isGateway: boolean;
  /** Made when the servers run. */
  readonly client: () => Client;
}

const schema = {
  type: "object",
  properties: { city: { type: "string" }, degrees: { type: "integer" } },
  required: ["city", "degrees"],
  additionalProperties: false,
};

/** A picture of one dot. */
const png = Buffer.concat([
  Buffer.from("89504e470d0a1a0a0000000d49484452", "hex"),
  deflateSync(Buffer.alloc(64, 7)),
]);

const greetingText = greeting.join("");

/** Runs all of it. */
export function check(pair: Pair): void {
  for (const stream of [false, true]) {
    describe(stream ? "streamed" : "whole", () => {
      checkText(pair, stream);
      checkTools(pair, stream);
      checkReasoning(pair, stream);
      checkFailures(pair, stream);
    });
  }
}

function lacks({ row }: Pair, feature: Feature): boolean {
  return row.lacks?.[feature] !== undefined;
}

function checkText(pair: Pair, stream: boolean): void {
  it("the client gets text and usage", async () => {
    const answer = await pair.client().ask({ text: "say hello", stream });
    expect(answer.text).toBe(greetingText);
    if (!lacks(pair, "usage")) {
      // A translated messages stream can only begin with an estimate; a client that reads no
      // further keeps it.
      if (!lacks(pair, "inputAtEnd") || !stream || pair.vendor === pair.row.style) {
        expect(answer.usage?.input).toBe(tokens.input);
      }
      // LangChain adds the output that a messages stream starts with to what it ends with.
      expect([tokens.output, tokens.output + 1]).toContain(answer.usage?.output);
    }
  });

  it("the system's text and sampling settings arrive", async () => {
    const { client } = pair;
    const system = await client().ask({ text: "echo system", system: "Be brief.", stream });
    expect(system.text).toBe("Be brief.");
    const settings = await client().ask({ text: "echo settings", temperature: 0.5, stream });
    if (!lacks(pair, "temperature")) expect(settings.text).toMatch(/"temperature":0.5/);
  });

  it("an image arrives byte for byte", async () => {
    const answer = await pair.client().ask({ text: "describe image", image: png, stream });
    expect(answer.text).toBe(describeBytes("image/png", png));
  });

  it("structured output fits its schema", async () => {
    const answer = await pair.client().ask({ text: "json schema", schema, stream });
    expect(JSON.parse(answer.text)).toEqual({ city: "Bern", degrees: 7 });
  });

  it("the end at the token limit, and a refusal, are told", async () => {
    if (!lacks(pair, "long")) {
      const long = await pair.client().ask({ text: "be long", stream });
      expect(long.text).toBe("And then and then");
      if (!lacks(pair, "finish")) {
        expect(long.finish).toMatch(/^(length|max_tokens|max_output_tokens|incomplete)$/);
      }
    }
    if (lacks(pair, "refusal")) return;
    const {
      refusal = "",
      finish = "",
      text,
    } = await pair.client().ask({ text: "please refuse", stream });
    expect(`${refusal} ${text} ${finish ?? ""}`).toMatch(/I cannot help|refusal|content.filter/);
  });
}

function checkTools(pair: Pair, stream: boolean): void {
  it("the client runs a tool loop: call, result, answer", async () => {
    const answer = await pair.client().loop({ text: "call weather", stream });
    expect(answer.text).toBe("Tools said: 18 degrees in Bern");
  });

  it("the client calls two tools at once, and one after the other", async () => {
    const both = await pair.client().loop({ text: "call two tools", stream });
    expect(both.text).toBe("Tools said: 18 degrees in Bern | 12:00 in Paris");
    const twice = await pair.client().loop({ text: "call twice weather", stream });
    expect(twice.text).toBe("Tools said: 18 degrees in Bern | 18 degrees in Paris");
  });
}

/** Where a client has a member for reasoning, and the vendor one for taking it back. */
function carriesReasoning({ row, vendor }: Pair): boolean {
  if (row.lacks?.reasoning !== undefined) return false;
  return row.style === "chat" ? vendor === "chat" : vendor !== "chat";
}

/** A chat client has no way to ask for what it is shown: it sees what the vendor shows unasked. */
function showsReasoning({ row, vendor }: Pair): boolean {
  if (row.lacks?.shownReasoning !== undefined) return false;
  return row.style !== "chat" || vendor === "chat" || vendor === "messages";
}

function checkReasoning(pair: Pair, stream: boolean): void {
  it("reasoning is shown, and comes back in the next turn", async () => {
    const shown = await pair.client().ask({ text: "think", think: true, stream });
    expect(shown.text).toBe(greetingText);
    if (showsReasoning(pair)) {
      expect(shown.reasoning).toBe(thoughts.join(""));
    }
    const counted = await pair.client().converse([
      { text: "think", think: true, stream },
      { text: "count reasoning", think: true, stream },
    ]);
    if (carriesReasoning(pair)) expect(counted.text).toBe("1");
    else expect(counted.text).toMatch(/^[01]$/);
  });

  it("the client carries reasoning between tool calls", async () => {
    const answer = await pair
      .client()
      .loop({ text: "think, then call weather", think: true, stream });
    expect(answer.text).toBe("Tools said: 18 degrees in Bern");
  });
}

function checkFailures(pair: Pair, stream: boolean): void {
  // Before its head a stream fails as a whole reply does.
  it.each(stream ? [400] : [400, 429, 500])("the vendor's %s is raised", async (status) => {
    const failure = await failureOf(pair, `status ${status}`, stream);
    // The vendor's own failure is a bad gateway.
    expect(failure.status).toBe(pair.isGateway && status === 500 ? 502 : status);
    if (!pair.isGateway || lacks(pair, "code") || pair.row.style === pair.vendor) return;
    const codes = { 400: "invalid_request", 429: "rate_limit_exceeded", 500: "upstream_error" };
    expect(failure.code).toBe(codes[status as keyof typeof codes]);
  });

  it("a connection that breaks, or an error in the middle, is raised", async () => {
    const cut = await failureOf(pair, "cut", stream);
    const failed = await failureOf(pair, "error midstream", stream);
    if (!pair.isGateway || lacks(pair, "code") || (stream && lacks(pair, "streamCode"))) return;
    expect(cut.code).toBe("upstream_error");
    // A vendor's own error event of messages passes as it is, and has no code there.
    const isRelayed = stream && pair.row.style === "messages" && pair.vendor === "messages";
    expect(failed.code).toBe(isRelayed ? undefined : "upstream_error");
  });
}

async function failureOf(pair: Pair, text: string, stream: boolean) {
  const client = pair.client();
  let answer: unknown;
  try {
    answer = await client.ask({ text, stream });
  } catch (error) {
    return client.failureOf(error);
  }
  throw new Error(`no error, but ${JSON.stringify(answer)}`);
}
