/** The life of a key (R-KEY-2): enabled and disabled change into each other, deleted is final. */
import { KeyState } from "../../gen/uas/key/v1/key_pb.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";

/** A state that a stored key can have. */
export type StoredKeyState =
  | typeof KeyState.ENABLED
  | typeof KeyState.DISABLED
  | typeof KeyState.DELETED;

/** What can be done with a key. */
export type KeyAction = "enable" | "disable" | "delete";

/**
 * What becomes of a key by an action; `undefined`: refused. Doing again what is done changes nothing, so
 * that a repeated request is harmless.
 */
export const keyTransitions: Readonly<
  Record<KeyAction, Readonly<Record<StoredKeyState, StoredKeyState | undefined>>>
> = {
  enable: {
    [KeyState.ENABLED]: KeyState.ENABLED,
    [KeyState.DISABLED]: KeyState.ENABLED,
    [KeyState.DELETED]: undefined,
  },
  disable: {
    [KeyState.ENABLED]: KeyState.DISABLED,
    [KeyState.DISABLED]: KeyState.DISABLED,
    [KeyState.DELETED]: undefined,
  },
  delete: {
    [KeyState.ENABLED]: KeyState.DELETED,
    [KeyState.DISABLED]: KeyState.DELETED,
    [KeyState.DELETED]: KeyState.DELETED,
  },
};

/* What is said of keys that are not there. */

/** Somebody else's key is not found, as one that does not exist: nobody learns which do. */
export function noSuchKey(): GatewayError {
  return new GatewayError(ErrorCode.NOT_FOUND, "there is no such key: check key_id");
}

/** A deleted key does nothing any more. */
export function keyIsDeleted(): GatewayError {
  const text = "this key is deleted, which is final: create another one";
  return new GatewayError(ErrorCode.INVALID_REQUEST, text, { param: "key_id" });
}
