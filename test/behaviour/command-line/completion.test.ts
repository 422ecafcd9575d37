/** Completion in shells that this machine has. */
import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { run } from "./support.ts";

const has = (shell: string): boolean => spawnSync(shell, ["-c", "true"]).status === 0;

describe("uas completion", () => {
  it.runIf(has("bash"))("bash completes commands, options and their commands", async () => {
    const { out } = await run(["completion", "bash"]);
    const complete = (...words: string[]): string[] => {
      const program = `${out}\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _uas; echo "\${COMPREPLY[@]}"`;
      const { stdout } = spawnSync("bash", ["-c", program, "bash", ...words], { encoding: "utf8" });
      return stdout.trim().split(" ");
    };
    expect(complete("uas", "ke")).toEqual(["key"]);
    expect(complete("uas", "--json", "key", "dis")).toEqual(["disable"]);
    expect(complete("uas", "key", "create", "--account", "x", "--mod")).toEqual(["--models"]);
    expect(complete("uas", "completion", "f")).toEqual(["fish"]);
  });

  it.each(["zsh", "fish"])("prints a script for %s with every command", async (shell) => {
    const { out } = await run(["completion", shell]);
    for (const word of ["serve", "key", "adjust", "resend-failed"]) expect(out).toContain(word);
  });
});
