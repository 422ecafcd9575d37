/** The vendors of the document: their list, and the form of one. */
import { knownKinds } from "../../../src/config/kinds.ts";
import { presets } from "../../../src/config/presets.ts";
import { SelectField } from "../ui/field.tsx";
import { Button } from "../ui/button.tsx";
import { Credential } from "./credential.tsx";
import { ConfigText, type Path } from "./document.ts";
import { useEditor, useField } from "./editor.tsx";
import { EntriesCard } from "./entries.tsx";
import { FormPart, Item, LimitValues, NumberValue, ShareValues, TextValue } from "./fields.tsx";
import { TestCall } from "./test-call.tsx";
import { useConfigurationText } from "./text.ts";

const formKeys = [
  "kind",
  "preset",
  "base_url",
  "api_key",
  "credentials",
  "max_in_flight",
  "timeouts",
];

/** The list of vendors. */
export function VendorsCard() {
  const text = useConfigurationText();
  const { document } = useEditor();
  return (
    <EntriesCard
      section={{
        name: "vendors",
        title: text.vendorsTitle,
        hint: text.vendorsHint,
        add: text.vendorAdd,
        addTitle: text.vendorNew,
        addHint: text.vendorNewHint,
        none: text.vendorNone,
        remove: text.vendorRemove,
        start: {},
        columns: [
          {
            id: "kind",
            title: text.kindOrPreset,
            cell: (name) =>
              document.textAt(["vendors", name, "preset"]) ||
              document.textAt(["vendors", name, "kind"]),
          },
          {
            id: "address",
            title: text.address,
            from: "md",
            cell: (name) => (
              <span className="wrap-anywhere">
                {document.textAt(["vendors", name, "base_url"]) ||
                  presets.get(document.textAt(["vendors", name, "preset"]))?.baseUrl ||
                  text.absent}
              </span>
            ),
          },
        ],
        formKeys,
        form: (path) => <VendorForm path={path} />,
        footer: (name) => <VendorTest name={name} />,
      }}
    />
  );
}

function VendorForm({ path }: { path: Path }) {
  const text = useConfigurationText();
  const { document } = useEditor();
  const preset = presets.get(document.textAt([...path, "preset"]));
  return (
    <>
      <FormPart title={text.connection}>
        <KindField path={path} />
        <TextValue
          path={[...path, "base_url"]}
          label={text.address}
          {...(preset !== undefined &&
            preset.baseUrl !== "" && { hint: text.addressHint(preset.baseUrl) })}
        />
      </FormPart>
      <Credentials path={path} />
      <FormPart title={text.limitsTitle} hint={text.limitsHint}>
        <NumberValue path={[...path, "max_in_flight"]} label={text.maxInFlight} placeholder="–" />
      </FormPart>
      <FormPart title={text.timeoutsTitle} hint={text.timeoutsHint}>
        <div className="grid grid-cols-2 gap-3">
          {(["connect", "first_byte", "idle", "total"] as const).map((each) => (
            <TextValue
              key={each}
              path={[...path, "timeouts", each]}
              label={text.timeouts[each]}
              placeholder="–"
            />
          ))}
        </div>
      </FormPart>
    </>
  );
}

/** The kind or the preset: one choice, although the document has a key for each. */
function KindField({ path }: { path: Path }) {
  const text = useConfigurationText();
  const { document, write } = useEditor();
  const kind = useField([...path, "kind"]);
  const preset = useField([...path, "preset"]);
  const value = preset.value === "" ? `kind:${kind.value}` : `preset:${preset.value}`;
  const choices = [
    ...[...presets.keys()].map((name) => ({ value: `preset:${name}`, label: name })),
    ...knownKinds.map((name) => ({ value: `kind:${name}`, label: `${text.kinds}: ${name}` })),
  ];
  const missing = choices.some((choice) => choice.value === value)
    ? []
    : [{ value, label: kind.value || preset.value || text.chooseKind }];
  const choose = (chosen: string): void => {
    const [key = "", name = ""] = chosen.split(":");
    if (name === "") return;
    const other = key === "kind" ? "preset" : "kind";
    const without = document.with([...path, other], undefined);
    write(new ConfigText(without).with([...path, key], name));
  };
  return (
    <SelectField
      label={text.kindOrPreset}
      hint={text.kindHint}
      error={preset.value === "" ? kind.error : preset.error}
      value={value}
      choices={[...missing, ...choices]}
      onChoose={choose}
    />
  );
}

/** One credential, or a list of them with shares and limits. */
function Credentials({ path }: { path: Path }) {
  const text = useConfigurationText();
  const { document, write } = useEditor();
  const [, vendor = ""] = path;
  const list = [...path, "credentials"];
  const size = document.sizeAt(list);
  const add = (): void => {
    if (size !== undefined) return write(document.with([...list, size], { api_key: "${env:}" }));
    const first = { api_key: document.textAt([...path, "api_key"]) || "${env:}" };
    const without = new ConfigText(document.with([...path, "api_key"], undefined));
    return write(without.with(list, [first, { api_key: "${env:}" }]));
  };
  const suggested = (index: number): string =>
    index === 0 ? `${vendor}` : `${vendor}-${index + 1}`;
  return (
    <FormPart
      title={text.credentialsTitle}
      hint={text.credentialsHint}
      actions={<Button onClick={add}>{text.credentialAdd}</Button>}
    >
      {size === undefined ? (
        <Credential path={[...path, "api_key"]} suggestedName={suggested(0)} />
      ) : (
        Array.from({ length: size }, (_, index) => (
          <Item
            // oxlint-disable-next-line react/no-array-index-key -- credentials have no other name
            key={index}
            title={text.credentialNumber(index + 1)}
            remove={text.credentialRemove(index + 1)}
            onRemove={
              size === 1 ? undefined : () => write(document.with([...list, index], undefined))
            }
          >
            <Credential path={[...list, index, "api_key"]} suggestedName={suggested(index)} />
            <ShareValues path={[...list, index]} />
            <LimitValues path={[...list, index, "limits"]} />
          </Item>
        ))
      )}
    </FormPart>
  );
}

function VendorTest({ name }: { name: string }) {
  const text = useConfigurationText();
  const { inForce } = useEditor();
  return (
    <FormPart title={text.test} hint={text.testHint}>
      {inForce.lineAt(["vendors", name]) === 0 ? (
        <p className="text-muted">{text.testNotYet}</p>
      ) : (
        <TestCall vendor={name} />
      )}
    </FormPart>
  );
}
