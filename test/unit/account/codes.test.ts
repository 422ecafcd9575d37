/** R-KEY-3: what a code is good for, and how often. */
import { describe, expect, it } from "vitest";
import { codeChecksMax } from "../../../src/core/limits.ts";
import { accounts, requestOf, useCodes } from "./code-rig.ts";

const rig = useCodes();

describe("R-KEY-3: a code", () => {
  it("a code serves for its own purpose, subject, number and browser only", async () => {
    const { codes } = rig.open();
    const request = { ...requestOf(1, 1, 0), subject: accounts[0] ?? "" };
    const { shown = "" } = await codes.send(request);
    const others = [
      { ...request, purpose: 2 },
      { ...request, subject: accounts[1] ?? "" },
      { ...request, phone: "+8613800138999" },
      { ...request, binding: "another browser" },
    ];
    for (const other of others) await expect(codes.check(other, shown)).rejects.toThrow("expired");
    await (await codes.check(request, shown)).use();
    await expect(codes.check(request, shown)).rejects.toThrow("expired");
  });

  it("allows 5 checks, and a browser 15 wrong ones of a number a day, however many codes are sent", async () => {
    const { codes } = rig.open();
    const request = requestOf(1, 1, 0);
    const wrongs: string[] = [];
    for (let sent = 0; sent < 4; sent++) {
      await rig.pass(120_000);
      const { shown = "" } = await codes.send(request);
      const guess = async (code: string): Promise<void> => {
        const failure = await codes.check(request, code).catch((error: unknown) => error);
        wrongs.push(/wrong, |wrong:|expired|too many/.exec(String(failure))?.[0] ?? "right");
      };
      for (let count = 0; count < codeChecksMax; count++) await guess("x");
      await guess(shown);
    }
    const tried = [...Array.from({ length: codeChecksMax }, () => "wrong:"), "expired"];
    const blocked = Array.from({ length: codeChecksMax + 1 }, () => "too many");
    expect(wrongs).toEqual([...tried, ...tried, ...tried, ...blocked]);
  });

  it("a code is used up by one of many that present it at once", async () => {
    const { codes } = rig.open();
    const request = requestOf(1, 1, 0);
    const { shown = "" } = await codes.send(request);
    const all = Array.from({ length: 6 }, async () => (await codes.check(request, shown)).use());
    const done = await Promise.allSettled(all);
    expect(done.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  });

  it("a code is in no table, and an unknown number never has a valid one", async () => {
    const { codes } = rig.open();
    const request = requestOf(1, 1, 0);
    const { shown = "" } = await codes.send({ ...request, isWanted: false });
    const { rows } = await rig.pool.query<{ row: string }>(
      "select t::text as row from one_time_code t",
    );
    expect(rows.map(({ row }) => row).join()).not.toContain(shown);
    await expect(codes.check(request, shown)).rejects.toThrow("wrong");
  });
});
