/** The memory of bodies that are arriving, or were refused. */
import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { unfinishedBodyBytesMax } from "../../../src/core/limits.ts";
import type { Caller } from "../../../src/core/caller.ts";
import { BodyBudget } from "../../../src/edge/bodies/body-budget.ts";
import { readBody } from "../../../src/edge/rest/request-parts.ts";

const caller: Caller = { kind: "key", accountId: "a", keyId: "k", models: undefined };

it("a refused body takes no memory while its rest is still arriving (R-AUTH-7)", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const bodies = new BodyBudget();
  const request = new IncomingMessage(new Socket());
  const reading = readBody(request, new ServerResponse(request), { bodies, caller });
  const pieces: Array<WeakRef<Buffer>> = [];
  const arrive = (): void => {
    const piece = Buffer.alloc(1024 * 1024);
    pieces.push(new WeakRef(piece));
    request.emit("data", piece);
  };
  arrive();
  arrive();
  const others = bodies.open(caller);
  others.keep(unfinishedBodyBytesMax.owner - bodies.bytes - 1_000);
  arrive();
  await expect(reading).rejects.toThrow("Too many uploads");
  others.close();
  // Weak references last until the end of a turn.
  await new Promise(setImmediate);
  collect();
  expect(pieces.map((piece) => piece.deref())).toEqual([undefined, undefined, undefined]);
  expect(bodies.bytes).toBe(0);
  request.emit("end");
});

it("a body counts for what it takes in memory: in pieces of one byte a hundred times its length", async () => {
  const bodies = new BodyBudget();
  const request = new IncomingMessage(new Socket());
  const reading = readBody(request, new ServerResponse(request), { bodies, caller });
  for (let i = 0; i < 1_000; i++) request.emit("data", Buffer.alloc(1));
  expect(bodies.bytes).toBeGreaterThan(100_000);
  request.emit("end");
  expect(await reading).toHaveLength(1_000);
  expect(bodies.bytes).toBe(0);
});
