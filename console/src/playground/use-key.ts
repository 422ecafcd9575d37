/**
 * The API key of the playground. Its calls use the documented paths like the calls of any program,
 * so they are charged and logged with a separate key. The secret is in this page's memory only. The
 * key lives for an hour at most, and ends with the page.
 */
import { useMutation } from "@connectrpc/connect-query";
import { useEffect, useRef } from "react";
import { KeyService } from "../../../gen/uas/key/v1/key_service_pb.ts";
import { useText } from "../common/language.tsx";
import { useAccountId } from "../common/session.tsx";
import { timestampOf } from "../common/time.ts";

/** Lifetime of a key of the playground. */
const lifeMs = 3_600_000;

interface Made {
  readonly keyId: string;
  readonly secret: string;
  readonly untilMs: number;
}

/**
 * Resolves with the secret; creates the key on first use, and a new one when it is about to expire.
 */
export function usePlaygroundKey(): () => Promise<string> {
  const accountId = useAccountId();
  const { playground } = useText();
  const made = useRef<Made>(undefined);
  const create = useMutation(KeyService.method.createKey, { gcTime: 0 });
  const { mutate: remove } = useMutation(KeyService.method.deleteKey);
  useEffect(
    () => () => {
      if (made.current !== undefined) remove({ keyId: made.current.keyId });
      made.current = undefined;
    },
    [remove],
  );
  return async () => {
    const untilMs = Date.now() + lifeMs;
    // In its last minute, it might expire during a long reply.
    if (made.current !== undefined && made.current.untilMs > Date.now() + 60_000) {
      return made.current.secret;
    }
    const expireTime = timestampOf(untilMs);
    const { key, secret } = await create.mutateAsync({
      accountId,
      name: playground.keyName,
      expireTime,
    });
    made.current = { keyId: key?.keyId ?? "", secret, untilMs };
    return secret;
  };
}
