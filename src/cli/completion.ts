/** `uas completion …`: scripts with which shells complete commands and options. */
import { Argument, type Command } from "commander";
import type { CliTools } from "./context.ts";

/** Adds the action of `uas completion`. It needs the program with all of its commands. */
export function addCompletion(completion: Command, { print }: CliTools): void {
  completion
    .addArgument(new Argument("<shell>", "the shell").choices(Object.keys(scripts)))
    .addHelpText(
      "after",
      '\nbash: eval "$(uas completion bash)"\nzsh:  eval "$(uas completion zsh)"\nfish: uas completion fish | source',
    )
    .action((shell: keyof typeof scripts, _options: unknown, { parent }: Command) => {
      if (parent === null) throw new Error("the command is not part of a program");
      const text = scripts[shell](parent);
      print({ json: { shell, script: text }, text });
    });
}

const scripts = { bash: bashScript, zsh: zshScript, fish: fishScript };

/** A command with the words that may follow it. */
interface Level {
  /** Its words without the program's name, such as `key create`. */
  readonly path: string;
  readonly command: Command;
}

/** The command and all below it. */
function levels(command: Command, path = ""): readonly Level[] {
  const below = command.commands.flatMap((each) => levels(each, `${path} ${each.name()}`.trim()));
  return [{ path, command }, ...below];
}

/** Words that may follow: commands, values of the next argument, options. */
function wordsAfter({ commands, registeredArguments, options }: Command): readonly string[] {
  return [
    ...commands.map((each) => each.name()),
    ...registeredArguments.flatMap(({ argChoices = [] }) => argChoices),
    ...options.flatMap(({ long }) => (long === undefined || long === null ? [] : [long])),
    "--help",
  ];
}

function bashScript(program: Command): string {
  const all = levels(program);
  const global = program.options.map(({ long }) => long).join(" ");
  const cases = all.map(
    ({ path, command }) => `    "${path}") words="${wordsAfter(command).join(" ")}" ;;`,
  );
  const paths = all.filter(({ path }) => path !== "").map(({ path }) => `"${path}"`);
  return `_uas() {
  local path="" word words="" next
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    next="\${path:+$path }$word"
    case $next in
      ${paths.join(" | ")}) path=$next ;;
    esac
  done
  case $path in
${cases.join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words ${global}" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _uas uas`;
}

/** zsh runs bash's functions. */
function zshScript(program: Command): string {
  return `autoload -U +X bashcompinit && bashcompinit\n${bashScript(program)}`;
}

function fishScript(program: Command): string {
  const quoted = (text: string): string => `'${text.replaceAll(/['\\]/g, "\\$&")}'`;
  const lines = levels(program).flatMap(({ path, command }) => {
    const words = path === "" ? [] : path.split(" ");
    const seen = words.map((word) => `__fish_seen_subcommand_from ${word}`);
    const here = command.commands.map((each) => each.name()).join(" ");
    const notBelow = here === "" ? [] : [`not __fish_seen_subcommand_from ${here}`];
    const when = (conditions: readonly string[]): string =>
      conditions.length === 0 ? "" : ` -n ${quoted(conditions.join("; and "))}`;
    const commands = command.commands.map(
      (each) =>
        `complete -c uas -f${when([...seen, ...notBelow])} -a ${each.name()} -d ${quoted(each.description())}`,
    );
    const options = command.options.flatMap(({ long, description, required }) =>
      long
        ? [
            `complete -c uas${when(seen)} -l ${long.slice(2)}${required ? " -r" : ""} -d ${quoted(description)}`,
          ]
        : [],
    );
    return [...commands, ...options];
  });
  return lines.join("\n");
}
