/** CountTokens and Embed as internal callers see them: what REST cannot ask for. */
import { describe, expect, it } from "vitest";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { ErrorCode } from "../../../src/core/errors.ts";
import {
  bearer,
  demoModel,
  failureOf,
  inferenceOf,
  type Protocol,
  useGateway,
  withTransport,
} from "./harness.ts";

const fixture = useGateway();
const body = Buffer.from(
  JSON.stringify({ model: demoModel, messages: [{ role: "user", content: "Hello" }] }),
);

describe.each<Protocol>(["grpc", "connect"])("by %s", (protocol) => {
  const inference = <T>(work: (client: ReturnType<typeof inferenceOf>) => Promise<T>) =>
    withTransport(fixture.gateway.internalUrl, protocol, (transport) =>
      work(inferenceOf(transport)),
    );
  const options = () => ({ headers: bearer(fixture.customer.key) });

  it("CountTokens reports whether it is an estimate, and the body of the dialect", async () => {
    const request = { dialect: Dialect.MESSAGES, body };
    const got = await inference((client) => client.countTokens(request, options()));
    expect(got).toMatchObject({ isEstimate: true, head: { status: 200 } });
    expect(got.inputTokens).toBeGreaterThan(0);
    expect(JSON.parse(Buffer.from(got.body).toString())).toEqual({ input_tokens: got.inputTokens });
  });

  it.each([
    [{ body }, "dialect"],
    [{ dialect: Dialect.CHAT_COMPLETIONS, body }, "dialect"],
    [{ dialect: Dialect.GEMINI, body }, "dialect"],
    [{ dialect: Dialect.MESSAGES, body, query: "a b" }, "query"],
    [{ dialect: Dialect.MESSAGES, body, headers: { accept: "a\nb" } }, "headers"],
  ])("CountTokens refuses %j", async (request, param) => {
    const { told } = await inference((client) => failureOf(client.countTokens(request, options())));
    expect(told).toMatchObject({ code: ErrorCode.INVALID_REQUEST, param });
  });

  it("Embed passes on that the vendor cannot make embeddings with the model", async () => {
    const request = { body: Buffer.from(JSON.stringify({ model: demoModel, input: "x" })) };
    const got = await inference((client) => client.embed(request, options()));
    expect(got.head).toMatchObject({ status: 400 });
    expect(JSON.parse(Buffer.from(got.body).toString())).toMatchObject({
      error: { param: "model", message: expect.stringContaining("is embedding") },
    });
  });

  it("CountTokens and Embed need a key", async () => {
    const count = inference((client) => failureOf(client.countTokens({ body })));
    expect((await count).told.code).toBe(ErrorCode.UNAUTHENTICATED);
    const embed = inference((client) => failureOf(client.embed({ body })));
    expect((await embed).told.code).toBe(ErrorCode.UNAUTHENTICATED);
  });
});
