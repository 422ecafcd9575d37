/** The choice of a time zone: the browser's own, UTC, or any other. */
import { useText } from "./language.tsx";
import { localZone } from "./time.ts";
import { SelectField } from "./ui/select.tsx";
import { allZones } from "./zone.ts";

/** The field. */
export function ZoneField({
  zone,
  onChoose,
  isLabelHidden = false,
  className,
}: {
  /** Absent: the browser's. */
  zone: string | undefined;
  onChoose: (zone: string | undefined) => void;
  isLabelHidden?: boolean;
  className?: string;
}) {
  const { common } = useText();
  const named = ["UTC", ...allZones()];
  const zones = zone === undefined || named.includes(zone) ? named : [zone, ...named];
  return (
    <SelectField
      label={common.zone}
      isLabelHidden={isLabelHidden}
      {...(className !== undefined && { className })}
      value={zone ?? ""}
      choices={[
        { value: "", label: common.ownZone(localZone()) },
        ...zones.map((value) => ({ value, label: value.replaceAll("_", " ") })),
      ]}
      onChoose={(value) => onChoose(value || undefined)}
    />
  );
}
