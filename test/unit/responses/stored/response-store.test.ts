import { Pool } from "pg";
import { describe, expect, it } from "vitest";
import { storedResponseBytesMax } from "../../../../src/core/limits.ts";
import { ErrorCode } from "../../../../src/core/errors.ts";
import {
  createResponseStore,
  type ResponseStore,
} from "../../../../src/responses/stored/response-store.ts";
import { answer, expire, newAccount, newResponseId, response, useDatabase } from "./harness.ts";

const fixture = useDatabase();

function open(accountBytesMax?: number): ResponseStore {
  const { pool } = fixture;
  return createResponseStore({ pool, ...(accountBytesMax !== undefined && { accountBytesMax }) });
}

/** Keeps a conversation of one turn for each text; returns the ids. */
async function converse(
  store: ResponseStore,
  accountId: string,
  texts: readonly string[],
): Promise<string[]> {
  const ids: string[] = [];
  for (const text of texts) {
    const turn = response(accountId, text, {
      previousResponseId: ids.at(-1),
      input: [{ role: "user", content: `ask ${text}` }],
    });
    await store.save(turn);
    ids.push(turn.responseId);
  }
  return ids;
}

/** An item as it is stored. */
function item(record: object): object {
  return { record, json: JSON.stringify(record) };
}

async function days(accountId: string, id: string): Promise<number> {
  const { rows } = await fixture.pool.query<{ days: number }>(
    `select extract(epoch from expires_at - now())::float8 / 86400 as days
     from stored_response where account_id = $1 and id = $2`,
    [accountId, id],
  );
  return rows[0]?.days ?? Number.NaN;
}

describe("a stored response", () => {
  it("a stored response comes back byte for byte, with its own input", async () => {
    const [store, account] = [open(), newAccount()];
    const bytes = Buffer.from('{ "id":"resp_1", "n":1.0e2, "t":"\\u0000 ü \\ud800", "output":[] }');
    const input = [{ type: "function_call_output", call_id: "c", output: "\u0000" }];
    const saved = response(account, "", { responseId: "resp_1", response: bytes, input });
    expect(await store.save(saved)).toBe(true);
    expect(await store.find(account, "resp_1")).toEqual({
      kind: "here",
      response: bytes,
      input: input.map(item),
    });
  });

  it("items keep their text, in the input, in the output and in the conversation (R-TXT-14)", async () => {
    const [store, account] = [open(), newAccount()];
    const text = (id: string): string =>
      String.raw`{"7":1.10,"id":"${id}","type":"mcp_call","n":2512292042121000001,"t":"\u00e9\/","1":[-0,1E400]}`;
    const spaced = text("mcp_1").replaceAll(",", " , ");
    const responseId = newResponseId();
    await store.save({
      ...response(account, "", { responseId }),
      input: `[ ${spaced} ]`,
      response: Buffer.from(`{"id":"${responseId}","output":[${text("mcp_2")}]}`),
    });
    const chain = await store.resolve(account, responseId);
    expect(chain?.kind === "here" && chain.items.map(({ json }) => json)).toEqual([
      text("mcp_1"),
      text("mcp_2"),
    ]);
    const found = await store.findItems(account, ["mcp_1", "mcp_2"]);
    expect([...found.values()].map(({ json }) => json)).toEqual([text("mcp_1"), text("mcp_2")]);
  });

  it("a stored response is not found by another account, nor by an invalid id", async () => {
    const [store, account] = [open(), newAccount()];
    const saved = response(account, "a");
    await store.save(saved);
    expect(await store.find(newAccount(), saved.responseId)).toBeUndefined();
    expect(await store.resolve(newAccount(), saved.responseId)).toBeUndefined();
    expect(await store.delete(newAccount(), saved.responseId)).toBe(false);
    for (const id of ["", "resp_\u0000", "resp_ü", " ", "r".repeat(101), "resp_none"]) {
      expect(await store.find(account, id)).toBeUndefined();
      expect(await store.resolve(account, id)).toBeUndefined();
      expect(await store.delete(account, id)).toBe(false);
    }
  });

  it("a stored response may have the id of another account's response: each account gets its own", async () => {
    const [store, one, two] = [open(), newAccount(), newAccount()];
    await store.save(response(one, "one", { responseId: "resp_same" }));
    await store.save(response(two, "two", { responseId: "resp_same" }));
    await store.delete(two, "resp_same");
    expect(await store.resolve(one, "resp_same")).toMatchObject({
      items: [{ content: "Hello" }, answer("one")].map((record) => ({ record })),
    });
    expect(await store.find(two, "resp_same")).toBeUndefined();
  });

  it("a stored response is gone once it is deleted or 30 days old", async () => {
    const [store, account] = [open(), newAccount()];
    const [first, second] = [response(account, "a"), response(account, "b")];
    await store.save(first);
    await store.save(second);
    expect(await days(account, first.responseId)).toBeCloseTo(30, 2);
    expect(await store.delete(account, first.responseId)).toBe(true);
    expect(await store.delete(account, first.responseId)).toBe(false);
    expect(await store.find(account, first.responseId)).toBeUndefined();
    await expire(fixture.pool, "stored_response", account);
    expect(await store.find(account, second.responseId)).toBeUndefined();
    expect(await store.resolve(account, second.responseId)).toBeUndefined();
  });

  it("a stored response is refused where it exceeds the size limit", async () => {
    const [store, account] = [open(), newAccount()];
    const long = response(account, "a", { input: "x".repeat(storedResponseBytesMax) });
    expect(await store.save(long)).toBe(false);
    expect(await store.find(account, long.responseId)).toBeUndefined();
  });
});

describe("a conversation", () => {
  it("a conversation is assembled in order, with reasoning and calls", async () => {
    const [store, account] = [open(), newAccount()];
    const reasoning = { id: "rs_1", type: "reasoning", summary: [], encrypted_content: "uas1.e30" };
    const call = { id: "fc_1", type: "function_call", call_id: "c1", name: "f", arguments: "{}" };
    const first = response(account, "", { output: [reasoning, call] });
    const result = { type: "function_call_output", call_id: "c1", output: "4" };
    const second = response(account, "done", {
      previousResponseId: first.responseId,
      input: [result],
    });
    await store.save(first);
    await store.save(second);
    expect(await store.resolve(account, second.responseId)).toEqual({
      kind: "here",
      model: "public-model",
      items: [{ role: "user", content: "Hello" }, reasoning, call, result, answer("done")].map(
        item,
      ),
    });
  });

  it("a conversation can branch: each end has its own history", async () => {
    const [store, account] = [open(), newAccount()];
    const [root = ""] = await converse(store, account, ["root"]);
    const branches = ["left", "right"].map((text) =>
      response(account, text, { previousResponseId: root, input: [] }),
    );
    await Promise.all(branches.map((branch) => store.save(branch)));
    for (const [i, text] of ["left", "right"].entries()) {
      expect(await store.resolve(account, branches[i]?.responseId ?? "")).toMatchObject({
        items: [{ content: "ask root" }, answer("root"), answer(text)].map((record) => ({
          record,
        })),
      });
    }
  });

  it("a conversation is refused where a response of it is gone, and the error names that response", async () => {
    const [store, account] = [open(), newAccount()];
    const [, middle = "", last = ""] = await converse(store, account, ["a", "b", "c"]);
    await store.delete(account, middle);
    await expect(store.resolve(account, last)).rejects.toMatchObject({
      code: ErrorCode.INVALID_REQUEST,
      param: "previous_response_id",
      message: expect.stringContaining(middle),
    });
  });

  it("a conversation is refused before it is read where it exceeds the size limit of a request", async () => {
    const [store, account] = [open(), newAccount()];
    const size = 7 * 1024 * 1024;
    let previousResponseId: string | undefined;
    for (let turn = 0; turn < 3; turn++) {
      const saved = response(account, "a", { previousResponseId, input: "x".repeat(size) });
      await store.save(saved);
      previousResponseId = saved.responseId;
    }
    await expect(store.resolve(account, previousResponseId ?? "")).rejects.toMatchObject({
      code: ErrorCode.REQUEST_TOO_LARGE,
      param: "previous_response_id",
    });
  });

  it("a conversation ends with an error where its links form a circle", async () => {
    const [store, account] = [open(), newAccount()];
    const [a, b] = [newResponseId(), newResponseId()];
    await store.save(response(account, "a", { responseId: a, previousResponseId: b }));
    await store.save(response(account, "b", { responseId: b, previousResponseId: a }));
    await expect(store.resolve(account, a)).rejects.toMatchObject({
      code: ErrorCode.REQUEST_TOO_LARGE,
    });
  });

  it("a conversation keeps its first response as long as its last", async () => {
    const [store, account] = [open(), newAccount()];
    const ids = await converse(store, account, ["a", "b"]);
    const [first = "", second = ""] = ids;
    await expire(fixture.pool, "stored_response", account, -3 * 86_400);
    expect(await days(account, first)).toBeCloseTo(3, 2);
    await store.save(response(account, "c", { previousResponseId: second }));
    expect(await days(account, first)).toBeCloseTo(30, 2);
    expect(await days(account, second)).toBeCloseTo(30, 2);
  });
});

describe("concurrent turns", () => {
  it("concurrent turns of one old conversation are all stored, without a deadlock", async () => {
    const [store, account] = [open(), newAccount()];
    const ids = await converse(store, account, ["a", "b", "c", "d", "e"]);
    await expire(fixture.pool, "stored_response", account, -86_400);
    const turns = Array.from({ length: 40 }, (_, i) =>
      response(account, `${i}`, { previousResponseId: ids[i % 5] }),
    );
    await Promise.all(turns.map((turn) => store.save(turn)));
    for (const id of ids) expect(await days(account, id)).toBeCloseTo(30, 2);
    for (const [i, { responseId }] of turns.entries()) {
      const chain = await store.resolve(account, responseId);
      expect(chain?.kind === "here" && chain.items).toHaveLength(2 * ((i % 5) + 2));
    }
  });
});

describe("a response that a vendor stores", () => {
  it("a response that a vendor stores is known by its vendor and model, and cannot be assembled here", async () => {
    const [store, account] = [open(), newAccount()];
    const expected = { kind: "vendor", vendor: "openai", model: "m" };
    const ofVendor = { responseId: "resp_v", bytes: 4_000 };
    const kept = { accountId: account, itemIds: ["msg_v", "rs_v", "a b"] };
    expect(await store.remember({ ...expected, ...ofVendor, ...kept })).toBe(true);
    expect(await store.find(account, "resp_v")).toEqual(expected);
    expect(await store.resolve(account, "resp_v")).toEqual({ ...expected, ...ofVendor });
    const items = [{ vendor: "openai", itemIds: ["msg_v", "rs_v"], bytes: 4_000 }];
    expect(await store.findVendorItems(account, ["rs_v", "rs_w"])).toEqual(items);
    expect(await store.findVendorItems(newAccount(), ["rs_v"])).toEqual([]);
    expect(await store.resolve(newAccount(), "resp_v")).toBeUndefined();
    const next = response(account, "x", { previousResponseId: "resp_v" });
    await store.save(next);
    await expect(store.resolve(account, next.responseId)).rejects.toThrow("resp_v");
    expect(await store.delete(account, "resp_v")).toBe(true);
  });

  it("a response that a vendor stores is not recorded where its id cannot be looked up", async () => {
    const kept = { accountId: newAccount(), responseId: "a b", model: "m", vendor: "openai" };
    expect(await open().remember({ ...kept, itemIds: [], bytes: 0 })).toBe(false);
  });
});

describe("items by id", () => {
  it("are found in input and output, only by their account", async () => {
    const [store, account] = [open(), newAccount()];
    const input = [{ id: "fc_in", type: "function_call", call_id: "c", name: "f", arguments: "" }];
    await store.save(response(account, "a", { input, output: [answer("a", "msg_out")] }));
    const found = await store.findItems(account, ["msg_out", "fc_in", "msg_none", "\u0000"]);
    expect(Object.fromEntries(found)).toEqual({
      msg_out: item(answer("a", "msg_out")),
      fc_in: item(input[0] ?? {}),
    });
    expect((await store.findItems(newAccount(), ["msg_out"])).size).toBe(0);
    expect((await store.findItems(account, [])).size).toBe(0);
  });
});

describe("references to items", () => {
  it("references to items are not items: the referenced item is found however often it is referenced", async () => {
    const [store, account] = [open(), newAccount()];
    const output = [answer("a", "msg_a")];
    const first = response(account, "", { output });
    await store.save(first);
    const input = [{ type: "item_reference", id: "msg_a" }];
    await store.save(response(account, "b", { input }));
    expect((await store.findItems(account, ["msg_a"])).get("msg_a")?.record).toEqual(output[0]);
    await store.delete(account, first.responseId);
    expect((await store.findItems(account, ["msg_a"])).size).toBe(0);
  });

  it("a reference means the newer item where an id came twice", async () => {
    const [store, account] = [open(), newAccount()];
    for (const text of ["old", "new"]) {
      await store.save(response(account, "", { output: [answer(text, "msg_same")] }));
    }
    const found = await store.findItems(account, ["msg_same"]);
    expect(found.get("msg_same")?.record).toEqual(answer("new", "msg_same"));
  });
});

describe("without its database", () => {
  it("every method fails with 503", async () => {
    const pool = new Pool({ host: "127.0.0.1", port: 1, connectionTimeoutMillis: 900 });
    const store = createResponseStore({ pool });
    const account = newAccount();
    for (const work of [
      store.find(account, "resp_1"),
      store.resolve(account, "resp_1"),
      store.save(response(account, "a")),
      store.delete(account, "resp_1"),
      store.findItems(account, ["msg_1"]),
    ]) {
      await expect(work).rejects.toMatchObject({ code: ErrorCode.SERVICE_UNAVAILABLE });
    }
    await pool.end();
  });
});

describe("an account's limit", () => {
  it("an account's limit deletes the responses that expire first, and none of other accounts", async () => {
    const [account, other] = [newAccount(), newAccount()];
    const big = (text: string, accountId = account) =>
      response(accountId, text, { input: "x".repeat(1_000) });
    const store = open(3_500);
    const theirs = big("theirs", other);
    await store.save(theirs);
    const saved = [];
    for (const text of ["a", "b", "c", "d", "e"]) {
      saved.push(big(text));
      await store.save(saved.at(-1) ?? big(text));
    }
    await store.trim();
    const found = await Promise.all(saved.map((each) => store.find(account, each.responseId)));
    expect(found.map((each) => each !== undefined)).toEqual([false, false, false, true, true]);
    expect(await store.find(other, theirs.responseId)).toBeDefined();
  });
});
