/** The fixed limits of signing in to the console, with their units and reasons. */

/** How long a console session lives after its last use, and after its sign-in, in milliseconds: 12 hours and 7 days. */
export const sessionIdleMs = 12 * 60 * 60 * 1_000;
export const sessionMs = 7 * 24 * 60 * 60 * 1_000;

/** How old the time of a session's last use may be, in milliseconds: so that not every call writes. */
export const sessionSeenMs = 60_000;

/** How long the token before a change still counts, in milliseconds: for the calls that a page has under way. */
export const sessionOverlapMs = 10_000;

/** The most sessions of a user; the next one ends the oldest. */
export const sessionsMax = 50;

/** How long a browser may take from asking for a code to signing in, in milliseconds. */
export const visitMs = 15 * 60_000;

/** How long a one-time link is good, and how long the session that it begins needs no other proof, in milliseconds. */
export const signInLinkMs = 60 * 60_000;
export const linkProofMs = 15 * 60_000;

/** A one-time code (R-KEY-3): how many digits, how long it is good in milliseconds, how many checks it allows. */
export const codeDigits = 7;
export const codeMs = 5 * 60_000;
export const codeChecksMax = 5;

/** How many wrong codes a number may be tried with in a day, whatever is sent meanwhile: guessing one of ten million
 * then takes centuries. */
export const codeGuessesMax = 15;

/** How many codes are sent, in so many milliseconds: to one number (R-KEY-3), for one account, to one address of the
 * internet, and to the numbers of one country. What all together may be is the operator's to say. */
export const codeSendsMax = {
  phone: [
    { max: 1, withinMs: 60_000 },
    { max: 5, withinMs: 60 * 60_000 },
    { max: 10, withinMs: 24 * 60 * 60_000 },
  ],
  account: [
    { max: 10, withinMs: 60 * 60_000 },
    { max: 20, withinMs: 24 * 60 * 60_000 },
  ],
  address: [
    { max: 10, withinMs: 60 * 60_000 },
    { max: 30, withinMs: 24 * 60 * 60_000 },
  ],
  country: [{ max: 200, withinMs: 60 * 60_000 }],
} as const;

/** How many codes are sent in a day where the configuration does not say. */
export const codesDailyDefault = 1_000;

/** How many wrong passwords, authenticator codes or links are taken, in so many milliseconds: for one user, and from
 * one address. */
export const failuresMax = {
  subject: { max: 10, withinMs: 15 * 60_000 },
  address: { max: 50, withinMs: 15 * 60_000 },
} as const;

/** How long codes and failures are kept, in milliseconds: longer than any of these windows. */
export const signInTracesMs = 2 * 24 * 60 * 60_000;

/** How often what has ended is deleted, in milliseconds. */
export const signInSweepMs = 10 * 60_000;

/** How long an SMS provider may take to answer, in milliseconds. */
export const smsAnswerMs = 10_000;
