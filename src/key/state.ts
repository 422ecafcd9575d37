/** The states of a key (R-KEY-2): enabled and disabled are reversible, deleted is final. */
import { KeyState } from "../../gen/uas/key/v1/key_pb.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";

/** A state that a stored key can have. */
export type StoredKeyState =
  | typeof KeyState.ENABLED
  | typeof KeyState.DISABLED
  | typeof KeyState.DELETED;

/** The actions that change a key's state. */
export type KeyAction = "enable" | "disable" | "delete";

/**
 * The state after an action; `undefined` means refused. Repeating an action changes nothing, so
 * that retries are harmless.
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

/**
 * The error for a key that does not exist or belongs to another account, so that callers cannot
 * probe for keys.
 */
export function noSuchKey(): GatewayError {
  return new GatewayError(ErrorCode.NOT_FOUND, "there is no such key: check key_id");
}

/** The error for changing a deleted key. */
export function keyIsDeleted(): GatewayError {
  const text = "this key is deleted, which is final: create another one";
  return new GatewayError(ErrorCode.INVALID_REQUEST, text, { param: "key_id" });
}
