/** Asks before a redeem code is revoked. */
import { useMutation } from "@connectrpc/connect-query";
import type { RedeemCode } from "../../../gen/uas/billing/v1/redeem_pb.ts";
import { RedeemService } from "../../../gen/uas/billing/v1/redeem_service_pb.ts";
import { useText } from "../language.tsx";
import { useDone } from "../settings/use-done.ts";
import { Confirm } from "../ui/dialog.tsx";
import { ErrorNote } from "../ui/show.tsx";

/** The dialog. */
export function RevokeDialog({ code, onClose }: { code: RedeemCode; onClose: () => void }) {
  const {
    operator: { codes: text },
  } = useText();
  const done = useDone();
  const revoke = useMutation(RedeemService.method.revokeRedeemCode, {
    onSuccess: async () => {
      onClose();
      await done(text.didRevoke);
    },
  });
  return (
    <Confirm
      isOpen
      onClose={onClose}
      onConfirm={() => revoke.mutate({ redeemCodeId: code.redeemCodeId })}
      title={text.revokeTitle(code.hint)}
      confirm={text.revokeConfirm}
      isBusy={revoke.isPending}
    >
      <p>{text.revokeText}</p>
      <ErrorNote error={revoke.error} />
    </Confirm>
  );
}
