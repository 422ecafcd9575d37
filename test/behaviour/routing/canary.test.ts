/**
 * No key and no vendor secret in any log line, error body, metric or upstream request (R-AUTH-4).
 */
import { expect, it } from "vitest";
import {
  answer,
  bytes,
  byteStream,
  failure,
  html,
  reset,
} from "../../support/upstream/behaviour.ts";
import { send } from "../../support/raw-http.ts";
import { ask, newRequestId, useGateway } from "../harness.ts";

/** Encoders of JSON may escape some of its characters. */
const vendorSecret = "sk-vendor/canary+5e1c0ffee==";
const fixture = useGateway(() => ({}), { secret: vendorSecret });

/** Streams that say the credential, each in another way. */
const sayings = [
  `data: {"error":{"message":"not with ${vendorSecret}","code":"${vendorSecret}"}}\n\n`,
  `data: {"error":{"message":"not with ${vendorSecret}"}}\n`,
  `data: {"error":{"message":"not with ${vendorSecret}"}}`,
  `data: {"error":{"message":"not with ${vendorSecret.replaceAll("/", "\\/")}"}}\n\n`,
  `data: {"error":{"message":"not with ${vendorSecret.replaceAll("+", "\\u002B")}"}}\n\n`,
  `event: error\ndata: {"message":"not with ${vendorSecret}"}\n\n`,
  `data: {"detail":"not with ${vendorSecret}"}\n\n`,
  `data: not with ${vendorSecret}\n\n`,
  `: not with ${vendorSecret}\n\n`,
];

it("no secret is shown anywhere, whatever goes wrong", async () => {
  const { gateway, customer, upstream } = fixture;
  const other = await gateway.customer();
  const disabled = await gateway.customer();
  await gateway.keys.disableKey({ keyId: disabled.keyId });
  const canaries = [customer.key, other.key, disabled.key, "uas_CANARYCANARYCANARYCANARYCANARY12"];
  const replies: string[] = [];
  const path = "/v1/chat/completions";
  const broken = [JSON.stringify(ask), "{", '{"model":"none","messages":[]}', ""];
  for (const key of canaries) {
    const slots: ReadonlyArray<[string, Record<string, string>]> = [
      [path, { authorization: `Bearer ${key}` }],
      [path, { authorization: "", "x-api-key": key }],
      [`${path}?api-key=${key}`, { authorization: "" }],
      [`/v1/nothing?api-key=${key}`, { authorization: "" }],
      [`/v1/models/none?api-key=${key}`, { authorization: "" }],
    ];
    for (const [url, headers] of slots) {
      for (const body of broken) {
        const reply = await fixture.send(url, { headers, body });
        replies.push(JSON.stringify(reply.headers), reply.body.toString());
      }
    }
  }
  const vendorKey = upstream.secret;
  const failures = [
    failure(400, { message: `your header was Bearer ${vendorKey}` }),
    failure(422, { message: vendorKey, code: vendorKey }),
    bytes(JSON.stringify({ object: "chat.completion", id: vendorKey, choices: [] })),
    failure(400, {}, { "x-request-id": vendorKey, "openai-organization": vendorKey }),
    failure(400, { message: vendorKey.replaceAll("/", "\\/") }),
    ...sayings.map((saying) => byteStream([saying])),
    byteStream([
      `data: {"error":{"message":"not with ${vendorKey.slice(0, 9)}`,
      `${vendorKey.slice(9)}"}}\n\n`,
    ]),
    failure(401, { message: `bad key ${upstream.secret}` }),
    failure(500),
    html(),
    reset,
  ];
  const cut = answer({ cutAfter: 2, ending: "destroy" });
  for (const behaviour of [...failures, cut]) {
    upstream.script(behaviour);
    const id = newRequestId();
    const reply = await fixture.chat({ ...ask, stream: true }, { "x-request-id": id });
    upstream.script(behaviour);
    // The same in another style: translated, not relayed.
    const messages = await fixture.send("/v1/messages", {
      body: JSON.stringify({ ...ask, max_tokens: 100, stream: true }),
    });
    replies.push(JSON.stringify(messages.headers), messages.body.toString());
    replies.push(JSON.stringify(reply.headers), reply.body.toString());
    replies.push(
      JSON.stringify(await gateway.call(id), (_name, value: unknown) =>
        typeof value === "bigint" ? String(value) : value,
      ),
    );
  }
  const metrics = await send(`${gateway.internalUrl}/metrics`, { method: "GET" });
  expect(metrics.status).toBe(200);
  expect(gateway.log.length).toBeGreaterThan(0);
  const said = [...replies, ...gateway.log, metrics.body.toString()].join("\n");
  for (const secret of [...canaries, upstream.secret]) {
    expect(said.includes(secret), `${secret.slice(0, 8)}…`).toBe(false);
    // Nor most of one: a masked form shows the first eight and last four characters only.
    expect(said.includes(secret.slice(8, -4)), `${secret.slice(0, 8)}… in part`).toBe(false);
  }
});

it("no task and no background response shows what a vendor's stream says of the credential", async () => {
  const { upstream } = fixture;
  const post = async (path: string, body: object): Promise<Record<string, string>> => {
    const reply = await fixture.send(path, { body: JSON.stringify(body) });
    return JSON.parse(reply.body.toString()) as Record<string, string>;
  };
  const ended = async (path: string): Promise<string> => {
    const text = (await fixture.send(path, { method: "GET" })).body.toString();
    return /"status":"(?:progress|queued|in_progress)"/.test(text) ? ended(path) : text;
  };
  for (const saying of sayings) {
    upstream.always(byteStream([saying]));
    const { model } = ask;
    const task = await post("/api/ai/tasks", { modelKey: model, textParams: { prompt: "Hi" } });
    const response = await post("/v1/responses", { model, input: "Hi", background: true });
    const shown = await Promise.all([
      ended(`/api/ai/tasks/${task["taskId"]}?wait=10`),
      ended(`/v1/responses/${response["id"]}`),
    ]);
    for (const text of shown) {
      expect(text).toMatch(/fail/);
      for (const spelled of [vendorSecret, vendorSecret.slice(8, -4)]) {
        expect(text).not.toContain(spelled);
      }
    }
  }
});
