/** The reference of the command line, from the parser. */
import type { Command, Option } from "commander";
import { buildProgram } from "../../src/cli/program.ts";
import { commandDocuments, sharedDocuments } from "./command-documents.ts";
import { code, table } from "./table.ts";

/** The page of all commands, in the order of the help. */
export async function commandsPage(): Promise<string> {
  const unused = (): Promise<never> => Promise.reject(new Error("the reference runs no command"));
  const context = {
    env: {},
    cwd: "/",
    version: "",
    out: () => {},
    err: () => {},
    servedKinds: unused,
    app: unused,
  };
  const program = await buildProgram({ context, print: () => {} }, () => true);
  return `# Commands

Here you find every command with its options; \`uas COMMAND --help\` prints the same.
\`--json\`, \`--env-file FILE\` and \`--gateway URL\` work with each of them.
[command-line.md](../command-line.md) explains how commands reach the gateway. Generated from \`src/cli/\`.

${program.commands.map((command) => section(command, command.name())).join("\n\n")}

${Object.entries(sharedDocuments)
  .map(([heading, text]) => `## ${heading}\n\n${text}`)
  .join("\n\n")}`;
}

function section(command: Command, path: string): string {
  const heading = `## ${path}`;
  if (command.commands.length === 0) return `${heading}\n\n${about(command, path)}`;
  const children = command.commands.map((child) => {
    const name = `${path} ${child.name()}`;
    return `### ${name}\n\n${about(child, name)}`;
  });
  return [heading, `To ${command.description()}.`, ...children].join("\n\n");
}

function about(command: Command, path: string): string {
  const names = command.registeredArguments.map((each) =>
    each.required ? `<${each.name()}>` : `[${each.name()}]`,
  );
  const usage = [path, ...names].join(" ");
  const described = command.registeredArguments.filter(({ description }) => description !== "");
  const rows = [
    ...described.map((each) => [code(each.name()), each.description]),
    ...command.options.map((option) => [code(option.flags), meaning(option)]),
  ];
  const document = commandDocuments.find(([commands]) => commands.split(", ").includes(path))?.[1];
  return [
    `${code(usage)}: ${command.description()}.`,
    ...(rows.length === 0 ? [] : [table(["argument or option", "meaning"], rows)]),
    ...(document === undefined ? [] : [`With \`--json\`: ${document}`]),
  ].join("\n\n");
}

function meaning(option: Option): string {
  const { description, mandatory, argChoices, defaultValue, defaultValueDescription } = option;
  const facts = [
    ...(mandatory ? ["required"] : []),
    ...(argChoices === undefined ? [] : [`one of ${argChoices.map(code).join(", ")}`]),
    ...(defaultValue === undefined || defaultValue === false
      ? []
      : [`default ${defaultValueDescription ?? String(defaultValue)}`]),
  ];
  return facts.length === 0 ? description : `${description} (${facts.join("; ")})`;
}
