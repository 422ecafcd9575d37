/** The documents of commands are those of commands that exist. */
import { expect, it } from "vitest";
import { commandDocuments } from "../../tools/reference/command-documents.ts";
import { readPage } from "./page.ts";

it("docs/reference/commands.md has the document of each command that prints one", () => {
  const named = commandDocuments.flatMap(([commands]) => commands.split(", "));
  const headings = readPage("docs/reference/commands.md").matchAll(/^##+ (.+)$/gm);
  const existing = new Set([...headings].map(([, heading]) => heading));
  expect(named.filter((command) => !existing.has(command))).toEqual([]);
  expect(new Set(named).size).toBe(named.length);
});
