/** Entries with names, vendors or models: their list, adding one, and the sheet with its form. */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { FileCode, Plus } from "lucide-react";
import { type ReactNode, useMemo, useState } from "react";
import { Button } from "../ui/button.tsx";
import { Card, CardHead, Empty } from "../ui/card.tsx";
import { Sheet } from "../ui/dialog.tsx";
import { TextField } from "../ui/field.tsx";
import { FilterBar, isFound, SearchField } from "../ui/filter-bar.tsx";
import { FormDialog } from "../ui/form.tsx";
import { Badge } from "../ui/show.tsx";
import { type Column, RowButton, Table } from "../ui/table.tsx";
import { changesOf } from "./changes.ts";
import type { ConfigText, Path, Value } from "./document.ts";
import { useEditor } from "./editor.tsx";
import { ProblemList } from "./problem-list.tsx";
import { isAt } from "./problems.ts";
import { useConfigurationText } from "./text.ts";

/** The two sections that have entries with names. */
export interface Section {
  readonly name: "vendors" | "models";
  readonly title: string;
  readonly hint: string;
  readonly add: string;
  readonly addTitle: string;
  readonly addHint: string;
  readonly none: string;
  readonly remove: string;
  /** The first values of a new entry. */
  readonly start: Value;
  /** Columns between the name and the line. */
  readonly columns: readonly Column<string>[];
  /** The keys that the form has; others are named. */
  readonly formKeys: readonly string[];
  readonly form: (path: Path) => ReactNode;
  /** Content below the form, also if it cannot be edited. */
  readonly footer: (name: string) => ReactNode;
}

/** The list of the entries, and the form of the open one. */
export function EntriesCard({ section }: { section: Section }) {
  const text = useConfigurationText();
  const { document, isEditable } = useEditor();
  const { entry } = useSearch({ from: "/inside/operator/configuration" });
  const navigate = useNavigate({ from: "/configuration" });
  const open = (name?: string): void =>
    void navigate({
      search: { tab: section.name, ...(name !== undefined && { entry: name }) },
    });
  const [isAdding, setAdding] = useState(false);
  const [search, setSearch] = useState("");
  const names = document.keysAt([section.name]);
  const columns = useColumns(section, open);
  return (
    <Card>
      <CardHead
        title={section.title}
        hint={section.hint}
        actions={
          isEditable && (
            <Button tone="primary" disabled={document.isBroken} onClick={() => setAdding(true)}>
              <Plus aria-hidden="true" />
              {section.add}
            </Button>
          )
        }
      />
      {document.isBroken && <p className="px-5 pb-4 text-bad">{text.broken}</p>}
      {names.length > searchFrom && (
        <FilterBar isBelowHead label={section.title}>
          <SearchField label={section.title} value={search} onChange={setSearch} />
        </FilterBar>
      )}
      <Table
        label={section.title}
        columns={columns}
        rows={names.filter((name) => isFound(search, name))}
        keyOf={(name) => name}
        onOpen={open}
        isOpen={(name) => name === entry}
        empty={<Empty icon={<FileCode />} title={section.none} />}
      />
      {isAdding && (
        <AddDialog
          section={section}
          onClose={() => setAdding(false)}
          onAdded={(name) => {
            setAdding(false);
            open(name);
          }}
        />
      )}
      <EntrySheet
        section={section}
        name={entry !== undefined && names.includes(entry) ? entry : undefined}
        onClose={() => open()}
      />
    </Card>
  );
}

/** The number of entries from which they can be searched. */
const searchFrom = 10;

function useColumns(section: Section, open: (name: string) => void): readonly Column<string>[] {
  const text = useConfigurationText();
  const { config, document, inForce, check, isEditable } = useEditor();
  const changed = useMemo(
    () => changesOf(inForce, document).map(({ path }) => path),
    [inForce, document],
  );
  const stateOf = (name: string): ReactNode => {
    const path = [section.name, name];
    const problems = check.problems.filter((problem) => isAt(problem, path));
    if (problems.length > 0) return <Badge tone="bad">{text.problemsOf(problems.length)}</Badge>;
    const isChanged = changed.some((each) => each[0] === section.name && each[1] === name);
    return isChanged && <Badge tone="info">{text.changed}</Badge>;
  };
  return [
    {
      id: "name",
      title: text.name,
      cell: (name) => (
        <span className="flex min-w-28 flex-wrap items-center gap-2">
          <RowButton onOpen={() => open(name)}>
            <span className="sr-only">{isEditable ? text.edit("") : text.show("")}</span>
            <span className="wrap-anywhere">{name}</span>
          </RowButton>
          {stateOf(name)}
        </span>
      ),
    },
    ...section.columns,
    {
      id: "line",
      title: text.placeTitle,
      isNumber: true,
      cell: (name) => {
        const line = document.lineAt([section.name, name]);
        return config.revision > 0n || config.source === "built-in demo" ? (
          line
        ) : (
          <span className="wrap-anywhere">{text.place(config.source, line)}</span>
        );
      },
    },
  ];
}

/** Asks for the name of a new entry, and adds it. */
export function AddDialog({
  section,
  onClose,
  onAdded,
}: {
  section: Pick<Section, "addTitle" | "addHint" | "start"> & { readonly name: string };
  onClose: () => void;
  onAdded: (name: string) => void;
}) {
  const text = useConfigurationText();
  const { document, write } = useEditor();
  const [name, setName] = useState("");
  const isTaken = document.keysAt([section.name]).includes(name.trim());
  return (
    <FormDialog
      onClose={onClose}
      title={section.addTitle}
      submit={text.add}
      canSubmit={name.trim() !== "" && !isTaken}
      onSubmit={() => {
        write(document.with([section.name, name.trim()], section.start));
        onAdded(name.trim());
      }}
    >
      <TextField
        label={text.name}
        hint={section.addHint}
        error={isTaken ? text.taken : undefined}
        value={name}
        maxLength={200}
        spellCheck={false}
        onChange={({ target }) => setName(target.value)}
      />
    </FormDialog>
  );
}

function EntrySheet({
  section,
  name,
  onClose,
}: {
  section: Section;
  name: string | undefined;
  onClose: () => void;
}) {
  const { isEditable } = useEditor();
  return (
    <Sheet
      isOpen={name !== undefined}
      onClose={onClose}
      title={name}
      actions={name !== undefined && isEditable && <EntryActions path={[section.name, name]} />}
    >
      {name !== undefined && (
        <div className="flex flex-col gap-7">
          <Entry section={section} name={name} />
          {section.footer(name)}
          {isEditable && <EntryEnd section={section} name={name} onClose={onClose} />}
        </div>
      )}
    </Sheet>
  );
}

/** Returns an entry to what is in force. */
function EntryActions({ path }: { path: Path }) {
  const text = useConfigurationText();
  const { document, inForce, write } = useEditor();
  const isNew = inForce.lineAt(path) === 0;
  if (isNew || document.isBroken || treeText(document, path) === treeText(inForce, path)) {
    return null;
  }
  return <Button onClick={() => write(document.withFrom(inForce, path))}>{text.undoEntry}</Button>;
}

function treeText(document: ConfigText, path: Path): string {
  return JSON.stringify(document.treeAt(path) ?? null, plain);
}

function plain(_key: string, value: unknown): unknown {
  return value instanceof Map ? [...value] : value;
}

function Entry({ section, name }: { section: Section; name: string }) {
  const text = useConfigurationText();
  const { document, check, isEditable } = useEditor();
  const path = [section.name, name];
  const problems = check.problems.filter((problem) => isAt(problem, path));
  const warnings = check.warnings.filter((warning) => isAt(warning, path));
  const others = document.keysAt(path).filter((key) => !section.formKeys.includes(key));
  const isShared = document.isShared(path);
  return (
    <>
      {problems.length > 0 && <ProblemList tone="bad" problems={problems} />}
      {warnings.length > 0 && <ProblemList tone="warn" problems={warnings} />}
      {isShared && <p className="text-warn">{text.shared}</p>}
      <fieldset
        disabled={!isEditable || isShared || document.isBroken}
        className="flex min-w-0 flex-col gap-7"
      >
        {section.form(path)}
      </fieldset>
      {others.length > 0 && (
        <p className="text-xs text-muted">{text.inDocument(others.join(", "))}</p>
      )}
    </>
  );
}

function EntryEnd({
  section,
  name,
  onClose,
}: {
  section: Section;
  name: string;
  onClose: () => void;
}) {
  const text = useConfigurationText();
  const { document, write } = useEditor();
  return (
    <div className="flex flex-wrap justify-between gap-2 border-t border-line pt-4">
      <Button
        tone="danger"
        onClick={() => {
          write(document.with([section.name, name], undefined));
          onClose();
        }}
      >
        {section.remove}
      </Button>
      <Button tone="primary" onClick={onClose}>
        {text.done}
      </Button>
    </div>
  );
}
