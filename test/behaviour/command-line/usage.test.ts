import { describe, expect, it } from "vitest";
import { run } from "./support.ts";

const id = "01890000-0000-7000-8000-000000000001";

describe("exit code 2: wrong usage, in one line, without opening anything", () => {
  it.each([
    [["acount"], "unknown command 'acount' (Did you mean account?)"],
    [["tasks", "show", id], "unknown command 'tasks' (Did you mean task?)"],
    [["key", "craete"], "unknown command 'craete' (Did you mean create?)"],
    [["key", "create"], "required option '--account <account>' not specified"],
    [
      ["key", "create", "--account", id, "--nam", "n"],
      "unknown option '--nam' (Did you mean --name?)",
    ],
    [["key", "create", "--account", id, "--models", ","], "Write names with commas between"],
    [["topup", id, "10"], "required option '--reference <text>' not specified"],
    [["topup", id, "ten", "--reference", "r"], "Write US dollars as a decimal number"],
    [["topup", id, "1e3", "--reference", "r"], "Write US dollars as a decimal number"],
    [["topup", id, "1.0000000001", "--reference", "r"], "at most 9 digits"],
    [["topup", id, "--reference", "r"], "missing required argument 'amount'"],
    [
      ["calls", "list", "--account", id, "--limit", "0"],
      "Write a whole number from 1 to 2147483647",
    ],
    [["calls", "show", "a", "b"], "too many arguments"],
    [["check", "--jsn"], "unknown option '--jsn' (Did you mean --json?)"],
  ])("wrong usage ends with exit code 2 and one line: uas %j", async (line, message) => {
    const ran = await run(line);
    expect(ran).toMatchObject({ code: 2, out: "", opened: [] });
    expect(ran.err).toMatch(/^uas: .*; see uas --help\n$/);
    expect(ran.err).toContain(message);
  });

  it.each([[[]], [["key"]], [["calls"]]])("uas %j shows its help", async (line) => {
    const ran = await run(line);
    expect(ran).toMatchObject({ code: 2, out: "" });
    expect(ran.err).toContain("Commands:");
  });
});

it("uas --version prints the version", async () => {
  expect(await run(["--version"])).toMatchObject({ code: 0, out: "1.2.3\n", err: "" });
});

describe("exit code 0: requested help", () => {
  it.each([[["--help"]], [["help", "key"]], [["key", "create", "--help"]]])(
    "requested help ends with exit code 0: uas %j",
    async (line) => {
      const ran = await run(line);
      expect(ran).toMatchObject({ code: 0, err: "", opened: [] });
      expect(ran.out).toContain("Usage: uas");
      expect(ran.out).toContain("--json");
    },
  );
});
