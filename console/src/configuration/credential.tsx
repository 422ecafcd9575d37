/** A reference to a credential: to a variable, a file, or a secret that is stored here. */
import { useQuery } from "@connectrpc/connect-query";
import { useState } from "react";
import { ConfigService } from "../../../gen/uas/config/v1/config_service_pb.ts";
import { Button } from "../ui/button.tsx";
import { SelectField, TextField } from "../ui/field.tsx";
import type { Path } from "./document.ts";
import { useEditor, useField } from "./editor.tsx";
import { SecretDialog } from "./secrets.tsx";
import { useConfigurationText } from "./text.ts";

type Source = "none" | "secret" | "env" | "file" | "credential" | "other";

interface Reference {
  readonly source: Source;
  readonly name: string;
}

function readReference(value: string): Reference {
  if (value === "") return { source: "none", name: "" };
  const [, source, name = ""] = /^\$\{(env|file|secret|credential):([^}]*)\}$/.exec(value) ?? [];
  return source === undefined ? { source: "other", name: "" } : { source: source as Source, name };
}

/** The fields of one credential. */
export function Credential({ path, suggestedName }: { path: Path; suggestedName: string }) {
  const text = useConfigurationText();
  const { value, error, set } = useField(path);
  const { source, name } = readReference(value);
  const choose = (chosen: Source): void => {
    if (chosen === source) return;
    set(chosen === "none" ? undefined : `\${${chosen}:}`);
  };
  const sources: readonly Source[] = ["none", "secret", "env", "file", "credential"];
  const shown = source === "other" ? ([...sources, source] as const) : sources;
  const named = (typed: string): void => set(`\${${source}:${typed.replaceAll("}", "")}}`);
  return (
    <div className="grid grid-cols-1 gap-3 sm:grid-cols-2">
      <SelectField
        label={text.credential}
        hint={source === "other" ? value : undefined}
        error={source === "none" || source === "other" ? error : undefined}
        value={source}
        choices={shown.map((each) => ({ value: each, label: text.credentialSources[each] }))}
        onChoose={choose}
      />
      {source === "env" && (
        <TextField
          label={text.variable}
          hint={text.variableHint}
          error={error}
          value={name}
          spellCheck={false}
          onChange={({ target }) => named(target.value)}
        />
      )}
      {source === "credential" && (
        <TextField
          label={text.systemdName}
          hint={text.systemdHint}
          error={error}
          value={name}
          spellCheck={false}
          onChange={({ target }) => named(target.value)}
        />
      )}
      {source === "file" && (
        <TextField
          label={text.path}
          hint={text.pathHint}
          error={error}
          value={name}
          spellCheck={false}
          onChange={({ target }) => named(target.value)}
        />
      )}
      {source === "secret" && (
        <SecretChoice name={name} error={error} suggestedName={suggestedName} onChoose={named} />
      )}
    </div>
  );
}

function SecretChoice({
  name,
  error,
  suggestedName,
  onChoose,
}: {
  name: string;
  error: string | undefined;
  suggestedName: string;
  onChoose: (name: string) => void;
}) {
  const text = useConfigurationText();
  const { isEditable } = useEditor();
  const [isOpen, setOpen] = useState(false);
  const { data } = useQuery(ConfigService.method.listSecrets, { pageSize: 1_000 });
  const names = (data?.secrets ?? []).map((secret) => secret.name);
  const known = names.includes(name) ? names : [name, ...names];
  return (
    <div className="flex min-w-0 flex-col items-start gap-2">
      <SelectField
        className="w-full"
        label={text.secret}
        error={error}
        value={name}
        choices={known.map((each) => ({ value: each, label: each || text.secretChoose }))}
        onChoose={onChoose}
      />
      {isEditable && (
        <Button onClick={() => setOpen(true)}>
          {names.includes(name) ? text.secretReplace : text.secretNew}
        </Button>
      )}
      {isOpen && (
        <SecretDialog
          {...(names.includes(name) && { replaces: name })}
          suggestedName={name || suggestedName}
          onClose={() => setOpen(false)}
          onStored={onChoose}
        />
      )}
    </div>
  );
}
