/** A sign-in method of the settings: its description, its value, and the dialog that changes it. */
import { type ReactNode, useState } from "react";
import { useText } from "../common/language.tsx";
import { Button } from "../ui/button.tsx";
import { Card, CardHead } from "../ui/card.tsx";
import { Badge } from "../ui/show.tsx";

/** Shows the current value, and opens `dialog`, which exists only while it is open. */
export function MethodCard({
  title,
  hint,
  value,
  change,
  dialog,
}: {
  title: string;
  hint: string;
  /** The current value. "Not set" by default. */
  value: ReactNode;
  /** The text of the button. */
  change: string;
  dialog: (onClose: () => void) => ReactNode;
}) {
  const { settings: text } = useText();
  const [isOpen, setOpen] = useState(false);
  return (
    <Card>
      <CardHead
        title={title}
        hint={hint}
        actions={<Button onClick={() => setOpen(true)}>{change}</Button>}
      />
      <p className="px-5 pb-5">{value ?? <Badge tone="neutral">{text.notSet}</Badge>}</p>
      {isOpen && dialog(() => setOpen(false))}
    </Card>
  );
}
