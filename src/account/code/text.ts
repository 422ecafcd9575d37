/** What a message with a code says. */
import { CodeAction } from "../../../gen/uas/account/v1/session_pb.ts";
import { codeMs } from "../../config/sign-in-limits.ts";
import { CodePurpose, purposeOf } from "./purpose.ts";

interface Words {
  readonly en: string;
  readonly zh: string;
}

/** What a code is for, as its message says it. */
const purposes: ReadonlyMap<number, Words> = new Map([
  [CodePurpose.SIGN_IN, { en: "sign in", zh: "登录" }],
  [CodePurpose.SET_PHONE, { en: "use this number", zh: "绑定手机号" }],
  [purposeOf(CodeAction.REVEAL_KEY), { en: "show an API key", zh: "查看 API 密钥" }],
  [
    purposeOf(CodeAction.REVEAL_WEBHOOK_SECRET),
    { en: "show the webhook secret", zh: "查看 Webhook 密钥" },
  ],
  [
    purposeOf(CodeAction.ROTATE_WEBHOOK_SECRET),
    { en: "replace the webhook secret", zh: "更换 Webhook 密钥" },
  ],
  [purposeOf(CodeAction.SET_PASSWORD), { en: "change your password", zh: "修改密码" }],
  [purposeOf(CodeAction.CHANGE_PHONE), { en: "change your number", zh: "更换手机号" }],
]);

const minutes = codeMs / 60_000;

/** The message: what the code is for, so that nobody gives it away for something else. */
export function codeText(purpose: number, code: string, language: "en" | "zh"): string {
  const what = purposes.get(purpose)?.[language] ?? "";
  return language === "zh"
    ? `验证码 ${code}，用于${what}，${minutes} 分钟内有效。请勿告诉他人。`
    : `${code} is your code to ${what}. It is good for ${minutes} minutes. Give it to nobody.`;
}
