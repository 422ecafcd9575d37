/** Two-factor authentication with an authenticator app. */
import { useMutation } from "@connectrpc/connect-query";
import { useState } from "react";
import { encode } from "uqr";
import { UserService } from "../../../gen/uas/account/v1/user_service_pb.ts";
import { useText } from "../common/language.tsx";
import { useSession } from "../common/session.tsx";
import { buttonClass } from "../ui/button.tsx";
import { TotpField } from "../ui/code-field.tsx";
import { CodeBlock } from "../ui/code.tsx";
import { FormDialog, useDone } from "../ui/form.tsx";
import { Badge } from "../ui/show.tsx";
import { MethodCard } from "./sign-in-method.tsx";

/** Sets up or removes the authenticator app. */
export function TotpCard() {
  const { settings: text } = useText();
  const { hasTotp } = useSession().user;
  return (
    <MethodCard
      title={text.totp}
      hint={text.totpHint}
      value={hasTotp ? <Badge tone="good">{text.totpOn}</Badge> : undefined}
      change={hasTotp ? text.totpRemove : text.totpAdd}
      dialog={(onClose) =>
        hasTotp ? <RemoveDialog onClose={onClose} /> : <AddDialog onClose={onClose} />
      }
    />
  );
}

function AddDialog({ onClose }: { onClose: () => void }) {
  const { settings: text, common } = useText();
  const [code, setCode] = useState("");
  const done = useDone(onClose);
  const start = useMutation(UserService.method.startTotp, { gcTime: 0 });
  const confirm = useMutation(UserService.method.confirmTotp, {
    onSuccess: () => done(text.totpAdded),
  });
  const started = start.data;
  return (
    <FormDialog
      onClose={onClose}
      title={text.totp}
      description={text.totpExplain}
      onSubmit={() => (started === undefined ? start.mutate({}) : confirm.mutate({ code }))}
      submit={started === undefined ? text.totpStart : common.save}
      isBusy={start.isPending || confirm.isPending}
      error={start.error ?? confirm.error}
    >
      {started !== undefined && (
        <>
          <p className="text-muted">{text.totpType}</p>
          <div className="flex flex-wrap items-center justify-center gap-4">
            <QrCode text={started.uri} label={text.totpQr} />
            <a href={started.uri} className={buttonClass()}>
              {text.totpOpen}
            </a>
          </div>
          <CodeBlock label={text.totpSecret} code={started.secret} />
          <TotpField value={code} onChange={setCode} />
        </>
      )}
    </FormDialog>
  );
}

function RemoveDialog({ onClose }: { onClose: () => void }) {
  const { settings: text } = useText();
  const [code, setCode] = useState("");
  const done = useDone(onClose);
  const remove = useMutation(UserService.method.removeTotp, {
    onSuccess: () => done(text.totpRemoved),
  });
  return (
    <FormDialog
      onClose={onClose}
      title={text.totpRemove}
      description={text.totpRemoveNote}
      onSubmit={() => remove.mutate({ code })}
      submit={text.totpRemove}
      tone="danger"
      isBusy={remove.isPending}
      error={remove.error}
    >
      <TotpField value={code} onChange={setCode} />
    </FormDialog>
  );
}

/** The light margin that cameras need, in modules, as ISO/IEC 18004 requires. */
const quietModules = 4;

/**
 * A text as a QR code, dark on light in both themes, because not every app reads the reverse.
 * Without inline styles, which the security policy of the pages forbids.
 */
function QrCode({ text, label }: { text: string; label: string }) {
  const { data, size } = encode(text, { ecc: "M", border: quietModules });
  return (
    <svg
      role="img"
      aria-label={label}
      viewBox={`0 0 ${size} ${size}`}
      shapeRendering="crispEdges"
      className="size-52 max-w-full shrink-0 rounded-lg border border-line"
    >
      <rect width={size} height={size} className="fill-white" />
      <path d={pathOf(data)} className="fill-black" />
    </svg>
  );
}

/** The dark modules: a rectangle for each run of them in a row. */
function pathOf(rows: readonly (readonly boolean[])[]): string {
  return rows
    .flatMap((row, y) =>
      [
        ...row
          .map((isDark) => (isDark ? "1" : "0"))
          .join("")
          .matchAll(/1+/g),
      ].map(({ index, 0: run }) => `M${index} ${y}h${run.length}v1h-${run.length}z`),
    )
    .join("");
}
