import { randomBytes } from "node:crypto";

const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** 154 bits: nobody finds one by asking. */
const tokenChars = 26;

/** Makes a token: letters and digits only, so that no notation changes a letter of the address. */
export function newToken(): string {
  let token = "";
  while (token.length < tokenChars) {
    for (const byte of randomBytes(tokenChars)) {
      // 248 is four times 62: the rest would make some letters likelier.
      if (byte < 248 && token.length < tokenChars) token += letters[byte % 62];
    }
  }
  return token;
}

/** Whether a text has the form of a token. */
export function isToken(text: string): boolean {
  return /^[0-9A-Za-z]{26}$/.test(text);
}
