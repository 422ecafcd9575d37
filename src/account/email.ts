/** A form that is rarely mistyped. Only an e-mail could show whether the address exists. */
const emailForm = /^[^\s@"(),:;<>[\]\\]{1,64}@[a-z0-9-]+(?:\.[a-z0-9-]+)+$/;

/** Reads an e-mail address, in lower case; undefined if it is none. */
export function readEmail(text: string): string | undefined {
  const email = text.trim().toLowerCase();
  return email.length <= 254 && emailForm.test(email) ? email : undefined;
}
