/** The secrets of webhooks. */
import type { WebhookSecret } from "../../../gen/uas/webhook/v1/webhook_pb.ts";
import { useText } from "../language.tsx";
import { Facts } from "../ui/card.tsx";
import { CopyButton } from "../ui/copy.tsx";
import { Time } from "../ui/show.tsx";

/** The secrets as they are: masked, or whole in the dialog. */
export function Secrets({ secret, isWhole = false }: { secret: WebhookSecret; isWhole?: boolean }) {
  const { webhooks: text } = useText();
  const show = (value: string) => (
    <span className="flex items-center gap-1">
      <code className="min-w-0 font-mono text-xs break-all select-all">{value}</code>
      {isWhole && <CopyButton isIcon text={value} />}
    </span>
  );
  return (
    <Facts
      rows={[
        [text.current, show(secret.current)],
        ...(secret.other === ""
          ? []
          : [[secret.isPromoted ? text.old : text.other, show(secret.other)] as const]),
        ...(secret.rotationEndTime === undefined
          ? []
          : [[text.until, <Time key="until" time={secret.rotationEndTime} />] as const]),
      ]}
    />
  );
}
