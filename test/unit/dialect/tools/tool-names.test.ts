import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { restoreToolName, toolNameFor } from "../../../../src/dialect/tools/tool-names.ts";

const plain = (name: string) => ({ name, namespace: "" });

describe("R-TXT-2: a tool's name survives a style that allows fewer names", () => {
  const chat = toolNameFor({ charsMax: 64, dots: false });
  const dotted = toolNameFor({ charsMax: 64, dots: true });

  it("a tool name that fits is left as it is", () => {
    expect(chat(plain("get_weather-2"))).toBe("get_weather-2");
    expect(chat(plain("a".repeat(64)))).toBe("a".repeat(64));
    expect(dotted(plain("fs.read"))).toBe("fs.read");
  });

  it("shortens what is too long to 55 characters and a digest", () => {
    expect(chat(plain("a".repeat(65)))).toMatch(/^a{55}_[0-9a-f]{8}$/);
  });

  it("what is illegal in a tool name is replaced", () => {
    expect(chat(plain("fs.read"))).toMatch(/^fs_read_[0-9a-f]{8}$/);
  });

  it("writes a namespace before the name", () => {
    const tools = [plain("run"), { name: "run", namespace: "shell" }];
    expect(chat({ name: "run", namespace: "shell" })).toBe("shell__run");
    expect(restoreToolName(tools, "shell__run")).toBe(tools[1]);
    expect(restoreToolName(tools, "run")).toBe(tools[0]);
  });

  it("maps nothing to a tool that was not sent", () => {
    expect(restoreToolName([plain("a")], "b")).toBeUndefined();
    expect(restoreToolName([plain("a")], "b_01234567")).toBeUndefined();
  });

  it("finds every tool again, whatever it is called", () => {
    const names = fc.uniqueArray(fc.string({ unit: "grapheme", minLength: 1, maxLength: 130 }), {
      minLength: 1,
      maxLength: 20,
    });
    fc.assert(
      fc.property(names, fc.boolean(), (given, dots) => {
        const tools = given.map(plain);
        const write = toolNameFor({ charsMax: 64, dots });
        for (const tool of tools) {
          const wire = write(tool);
          expect(wire).toMatch(dots ? /^[\w.-]{1,64}$/ : /^[\w-]{1,64}$/);
          expect(restoreToolName(tools, wire)).toBe(tool);
        }
      }),
    );
  });
});
