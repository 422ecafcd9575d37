/**
 * Every fixed limit of the gateway, with its unit and its reason, so that none is overlooked.
 * Settings of an installation are in config.ts. Times are in milliseconds and sizes in bytes unless
 * stated otherwise.
 */

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;
const kib = 1_024;
const mib = 1_024 * kib;

// Requests and replies

/** Maximum request body: room for a few images in base64. */
export const bodyBytesMax = 20 * mib;
/**
 * Bytes of a refused body that are read and discarded. Clients that send a short body before they
 * read the reply then receive it on a connection that stays open. A longer body would cost the
 * gateway bandwidth without payment.
 */
export const discardedBodyBytesMax = mib;
/**
 * Time between the end of reading a refused body and the end of its connection: the client's
 * sending stalls, so that it reads the reply, which would be lost if the connection were reset at
 * once.
 */
export const discardedBodyLingerMs = second;
/**
 * Maximum bytes of incomplete request bodies: of one key, of one account in the console, of all
 * callers of another kind; and of the process. Clients with endless uploads cannot use more memory.
 */
export const unfinishedBodyBytesMax = { owner: 64 * mib, process: 256 * mib } as const;
/** Maximum message of an RPC whose caller is not identified: enough for a sign-in form. */
export const anonymousMessageBytesMax = 64 * kib;
/** Maximum time a client may take to send the head of a request. */
export const headMs = 10 * second;
/** Maximum time a client may take to send one request. */
export const requestMs = 5 * minute;
/**
 * Maximum number of keys that an account's users may have: those that are not deleted, and those
 * created within a day. Operators may create more.
 */
export const accountKeysMax = 1_000;
/** Maximum request head. */
export const headerBytesMax = 16 * kib;
/** Maximum nesting of a JSON body; the outermost value is level 1. */
export const jsonDepthMax = 64;
/**
 * Maximum number of objects, lists, names and texts in a JSON body: reading one takes about a
 * microsecond, and the event loop waits for it. A conversation of a million tokens has fewer. Then
 * the maximum of other values: each takes a tenth of that, and a request for embeddings can have a
 * million tokens.
 */
export const [jsonPartsMax, jsonNumbersMax] = [300_000, 2_000_000];
/** Maximum length of a request id, in characters. */
export const requestIdCharsMax = 256;
/**
 * Maximum reply that is not streamed. It is read completely before its head is sent, so an
 * incomplete reply can become an error.
 */
export const replyBytesMax = 64 * mib;
/** Maximum length of a vendor's error reply that is read. */
export const refusalBytesMax = mib;
/** Maximum stream event; a longer one fails its stream. */
export const eventBytesMax = 16 * mib;
/**
 * Maximum ratio of decompressed to compressed size of a reply. JSON and events compress 5 to 50
 * times.
 */
export const decodedRatioMax = 200;
/** Default of `timeouts.total`: longer than any reply of a model. */
export const totalMs = hour;
/** Maximum part of a stream that waits for a slow client before the vendor is paused. */
export const streamBufferBytesMax = 256 * kib;
/**
 * Default maximum of concurrent calls to models per process. About as many paced streams as one
 * core serves (50 events a second each, about 20 µs per event). More JSON calls would only wait:
 * 2,000 of them for seconds.
 */
export const concurrentCallsMax = 1_000;
/**
 * Maximum number of concurrent token counts, polls and other free requests of an account and
 * process: more than an SDK sends at once, and few compared with {@link concurrentCallsMax}, which
 * all accounts together may run.
 */
export const freeWorkAccountMax = 64;
/**
 * A vendor gets token counts only while less than this part of its `max_in_flight` is in use: the
 * rest is for paid calls.
 */
export const countInFlightShare = 1 / 2;
/**
 * Maximum time a call waits for capacity within its limits: clients and proxies time out after
 * longer silence.
 */
export const limitWaitMsMax = 30 * second;
/**
 * Default time that a process still serves after SIGTERM while `/readyz` returns 503: longer than
 * most load balancers wait between two checks.
 */
export const drainDelayMsDefault = 5 * second;
/** Maximum time that running calls may continue after that. */
export const drainMs = minute;
/**
 * Default of `timeouts.first_byte` for the first content of a stream: a vendor that has sent
 * nothing by then rarely does. Models that reason may take longer, and have the default of complete
 * replies.
 */
export const firstContentMs = 30 * second;
/**
 * Default of `disconnect_grace`: how long a reply is read after its client disconnected. Within 5 s
 * nearly every reply that has begun is complete, with the vendor's usage.
 */
export const disconnectGraceMs = 5 * second;
/** Maximum for replies that are read to their end after a disconnect. */
export const detachedReplyMs = hour;
/**
 * Maximum number of replies that a process reads after a disconnect: each keeps a connection and up
 * to {@link streamBufferBytesMax}. The vendors of further ones are stopped.
 */
export const detachedRepliesMax = 256;
/** Default and maximum page size of lists. */
export const pageSizeDefault = 100;
export const pageSizeMax = 1_000;
/** Maximum number of buckets in a usage series: 41 days by the hour, more than a chart can show. */
export const bucketsMax = 1_000;

/**
 * Maximum number of refused calls of one key with one reason that have a record and a log line
 * each, per {@link refusalWindowMs}: enough to identify the caller. Further ones share one record.
 */
export const refusalRecordsMax = 10;
/** The window of {@link refusalRecordsMax} and {@link refusalKindsMax}. */
export const refusalWindowMs = minute;
/** Maximum number of keys and reasons that a process counts per {@link refusalWindowMs}. */
export const refusalKindsMax = 10_000;

// Holds and the ledger

/** Interval of a process's heartbeat in the database. */
export const nodeHeartbeatMs = 5 * second;
/**
 * A process without a heartbeat for this long counts as dead. Four heartbeats: a late one and a
 * long turn of the event loop do no harm. With {@link holdRecoveryMs}, money of a dead process
 * stays held for less than 60 s.
 */
export const nodeSilentMs = 20 * second;
/** Lifetime of a hold without renewal, for holds of an unknown process. */
export const holdTtlMs = 15 * minute;
/** Interval at which a live process renews the holds of its running calls. */
export const holdRenewMs = minute;
/** Recovery interval of the holds of dead processes and of expired holds. */
export const holdRecoveryMs = 5 * second;
/**
 * Days that released holds, and extensions of holds, are stored after the end of their month.
 * Receipts show them for that time.
 */
export const endedHoldKeptDays = 31;
/** Maximum time a call waits for its hold before it gets 503. */
export const holdWaitMs = 900;
/**
 * Maximum time that all statements of a task submit together wait for a database that does not
 * answer, before the submit gets 503.
 */
export const submitWaitMs = holdWaitMs;
/**
 * Maximum time that the shutdown of a process waits for an unreachable database if a journal stores
 * all settlements.
 */
export const awayCloseMs = second;
/** Maximum number of operations in one ledger batch. */
export const ledgerBatchMax = 1_000;
/** Maximum number of concurrent ledger batches, each on a separate connection. */
export const ledgerConnections = 4;
/**
 * Output tokens that the first hold of a stream covers, if the model's configuration sets no
 * number: as many as nearly every reply has, so that few holds have to grow.
 */
export const holdOutputTokensDefault = 2_048;
/**
 * Maximum time that a stream with an exhausted hold is paused while the ledger has not answered:
 * long for a database that works. Then it continues, as in an outage.
 */
export const extendWaitMs = 5 * second;
/** Interval at which running streams are compared with their holds. */
export const streamCheckMs = second;
/**
 * Time of a stream's first checkpoint, and the interval of later ones. A killed process loses only
 * what followed its last checkpoint. Most streams end before the first.
 */
export const checkpointFirstMs = second;
export const checkpointMs = 5 * second;
/**
 * Maximum time that a stream continues if its hold is exhausted and cannot grow because the
 * database does not answer.
 */
export const streamOutageMs = minute;

/**
 * Time a settlement waits for the database before it is written to the journal: long for a database
 * that works, short for a caller whose reply ends only afterwards.
 */
export const journalAfterMs = 250;
/**
 * Maximum number of settlements in the journal of a process. Only running calls can add to it:
 * without a database new calls are refused.
 */
export const journalEntriesMax = 100_000;
/**
 * Maximum size of a process's journal: over 100,000 settlements of 0.7 KB. With nine failed
 * attempts one has 2.2 KB.
 */
export const journalBytesMax = 128 * mib;
/** A journal of this size is rewritten, without the settlements that the database has. */
export const journalCompactBytes = 8 * mib;
/** Pause after a failed write to the journal. */
export const journalRetryMs = second;

// Stop sequences

/**
 * Maximum number of stop sequences that the gateway itself searches in a reply, for vendors that
 * accept none or fewer. Each one is searched in every piece of text.
 */
export const stopSequencesMax = 16;
/** The longest of them, in characters: that much text may be held back. */
export const stopSequenceCharsMax = 500;

// Token counting

/**
 * Bytes per token if a call is charged by an estimate. Holds use a stricter bound, see wire/json.
 */
export const bytesPerToken = 4;
/**
 * Maximum text whose tokens are counted exactly, and the timeout of the count: the worst such text
 * takes 2 s.
 */
export const countBytesMax = 2 * mib;
export const countTimeoutMs = 5 * second;
/**
 * Timeout of a free count, queue included; then the maximum numbers of an account's waiting texts
 * and of cached counts.
 */
export const countDeadlineMs = holdWaitMs;
export const [countAccountMax, countCacheMax] = [16, 1_000];
/** Maximum number of texts that wait for the counting thread. Further ones are estimated. */
export const countQueueMax = 256;
/**
 * Idle time after which the counting thread ends, and the pause before a new one after a failure.
 */
export const countIdleMs = minute;
export const countRestMs = 10 * second;

// Stored responses

/** Lifetime of a stored response after it, or a response that continues it, was created. */
export const storedResponseTtlMs = 30 * day;
/**
 * Time for which the events of a background response can be read again, from its request on: a
 * little more than the day within which it ends. Events take ten times the space of the response.
 */
export const storedEventsTtlMs = 26 * hour;
/**
 * Maximum stored response with its input. A longer one is answered, but cannot be read or continued
 * by its id.
 */
export const storedResponseBytesMax = 8 * mib;
/** Maximum storage per account. Beyond it the responses that would expire first are deleted. */
export const storedAccountBytesMax = 1_024 * mib;
/** Maximum number of responses that a request can continue by id: each is one look-up. */
export const storedChainMax = 1_000;
/**
 * Maximum time a call waits for stored state: to read it, and to store it before its last byte.
 * Equal to {@link holdWaitMs}.
 */
export const stateWaitMs = 900;
/** Maximum number of items that a request can refer to by id: each is one look-up. */
export const itemReferencesMax = 5_000;
/** Maximum length of a response id in characters: the router accepts no longer ones. */
export const responseIdCharsMax = 100;
/** Time for which reasoning is stored for a chat client that returns with a tool result. */
export const keptReasoningTtlMs = day;
/** Maximum stored reasoning of one turn. */
export const keptReasoningBytesMax = mib;

// Replies to calls with an `Idempotency-Key`

/** Time for which a repeated request gets the reply of the first one. */
export const keptReplyTtlMs = day;
/**
 * Maximum length of such a reply. A longer one is sent and charged; a repetition of its request is
 * refused.
 */
export const keptReplyBytesMax = 4 * mib;
/** Maximum storage per account. Beyond it the replies that would expire first are deleted. */
export const keptRepliesAccountBytesMax = 256 * mib;

// Tasks

/** Duration of a task's lease. After a kill another process continues the task within 30 s. */
export const taskLeaseMs = 25 * second;
/** Interval at which a process renews the leases of its tasks. */
export const taskHeartbeatMs = 8 * second;
/**
 * Interval at which a process checks for due tasks. It starts the tasks that it receives at once.
 */
export const taskScanMs = 500;
/** Maximum number of running tasks per account. Others are queued. */
export const taskAccountRunningMax = 20;
/** Maximum number of queued tasks per account. */
export const queuedTasksMax = 1_000;
/** Maximum number of concurrent submissions to vendors per process. */
export const taskSubmitsMax = 256;
/** Maximum number of concurrent status polls of vendors per process. */
export const taskChecksMax = 256;
/** Maximum number of tasks that one statement claims. */
export const taskClaimMax = 64;
/**
 * Pause before the first status poll; later ones grow by half each time, up to {@link
 * taskPollMsMax}.
 */
export const taskPollMs = second;
export const taskPollMsMax = 15 * second;
/**
 * Time a vendor may take to show a submitted task; its "not found" counts only afterwards. A
 * process has the same time to store a vendor's answer after an outage of the database, before the
 * answer counts as lost.
 */
export const taskSettleMs = 10 * second;
/** Maximum time a vendor that cannot be polled may take to report a task. */
export const taskUnknownMs = 10 * minute;
/**
 * Time for which a vendor is polled for the cost of a task that ended without a charge: vendors
 * delete tasks after a day.
 */
export const taskTrailMs = day;
/** Maximum number of consecutive connection failures before a task fails: about four minutes. */
export const taskConnectsMax = 20;
/**
 * Time a task waits for its operator if every vendor refuses the operator's account, from its first
 * submission; at most half of its deadline. Then it fails.
 */
export const taskFaultMs = 2 * minute;
/** Maximum pause before such a vendor is tried again; it grows from {@link taskPollMs}. */
export const taskFaultPauseMs = minute;
/** Maximum number of attempts to fetch a result before the task fails. */
export const taskFetchesMax = 6;
/** Time for which a task is stored after its end: as long as its callback id is valid. */
export const taskKeptMs = 30 * day;
/** Maximum time a task may be queued. */
export const taskQueueMs = day;
/** Lifetime of a task's hold: longer than any task, since a task ends its hold itself. */
export const taskHoldTtlMs = 3 * taskQueueMs;
/** Maximum number of waiting polls and watches per account and process. */
export const parkedPollsMax = 100;
/** Default deadline of a task, from the first submit to its vendor. */
export const taskRunMs = 30 * minute;
/**
 * Maximum time a vendor may take to answer a task, if its own timeouts are shorter: some vendors
 * create a whole image first and charge it in any case. The deadline of the task ends it.
 */
export const vendorWorkMs = 30 * minute;

// Webhooks

/** Maximum length of a URL that a customer provides, in characters. */
export const publicUrlCharsMax = 4_096;
/** Maximum body of a webhook. A longer result is available by poll and by `result_url`. */
export const webhookBodyBytesMax = 256 * kib;
/** Maximum length of an error message in a webhook, in characters. */
export const webhookErrorCharsMax = 8_192;
/** Timeout of a delivery, with DNS, connection and TLS: the 5 seconds of the specification. */
export const webhookAnswerMs = 5 * second;
/** Maximum number of concurrent deliveries: to one endpoint, of one account, and of one process. */
export const webhookEndpointMax = 8;
export const webhookAccountMax = 50;
export const webhookNodeMax = 500;
/**
 * The share of {@link webhookNodeMax} for endpoints that failed or are slow; and the share for
 * these together with endpoints of unknown health. The rest is for endpoints that answer, so that
 * hanging endpoints cannot block them.
 */
export const webhookSuspectShare = 0.5;
export const webhookUnprovenShare = 0.85;
/** An endpoint whose delivery takes longer counts as slow. */
export const webhookSlowMs = second;
/**
 * Duration of a delivery's lease: one attempt and some reserve. Then another process sends the
 * delivery.
 */
export const webhookLeaseMs = 15 * second;
/**
 * Interval at which a process checks for due deliveries without a notification: retries, and
 * deliveries whose notification was lost.
 */
export const webhookScanMs = 500;
/** Minimum interval of progress webhooks of a task. */
export const webhookProgressMs = second;
/** Number of consecutive failures that opens the breaker of an endpoint. */
export const webhookBreakerFailures = 5;
/** Wait of an open breaker before its first probe, and the maximum before later ones. */
export const webhookProbeMs = 30 * second;
export const webhookProbeMsMax = 10 * minute;
/** Time an endpoint may fail before its deliveries are parked. */
export const webhookDeadMs = 120 * hour;
/** Time for which webhooks and their attempts are stored. */
export const webhookKeptMs = 30 * day;
/** Time for which a replaced secret stays valid. */
export const webhookRotationMs = day;
/** Maximum part of an endpoint's response that is stored. */
export const webhookAnswerBytesKept = 2 * kib;

// Result files

/** Maximum result file. */
export const resultBytesMax = 512 * mib;
/** Time for which result files are stored (R-TSK-8). */
export const resultTtlMs = 7 * day;
/** Time for which an expired file returns 410 instead of 404. */
export const resultMemoryMs = 30 * day;
/**
 * An unfinished file of this age is removed: older than {@link resultFetchMs} and {@link
 * resultUploadMs} together.
 */
export const resultPendingMs = hour;
/** Timeouts of a download from a vendor: until its head, between two reads, and in total. */
export const resultHeadMs = 30 * second;
export const resultIdleMs = minute;
export const resultFetchMs = 15 * minute;
/** Timeout of an upload to the storage. */
export const resultUploadMs = 30 * minute;
/** Maximum number of redirects of a result: the storage of a vendor is often one redirect away. */
export const resultRedirectsMax = 3;
/**
 * Maximum number of result files that a process sends at once. Further readers get 503. Each uses a
 * file descriptor or a connection to the storage.
 */
export const resultReadersMax = 500;
/** Maximum time for which a reader of a result file may read nothing. */
export const resultReaderIdleMs = minute;
/** Interval at which expired result files are deleted. They are not served meanwhile. */
export const resultExpireMs = 10 * minute;

// Native interfaces

/**
 * Maximum time a vendor may take to answer a request that lets a client choose the wait (`Prefer:
 * wait` is at most 60 s).
 */
export const nativeWaitMs = 75 * second;
/**
 * Maximum time the head of a vendor's stream waits for the first event, which may report a problem
 * with the operator's account. Such an event arrives at once.
 */
export const nativeFaultWaitMs = second;
/** Maximum age of a job's reported state: all customers share one rate limit of their vendor. */
export const nativeRefreshMs = second;
/** Maximum stored state of a job. A longer state is requested from the vendor each time. */
export const nativeKeptBytesMax = mib;
/**
 * Time for which the owner of a vendor's object is stored: longer than any supported vendor stores
 * the object.
 */
export const nativeObjectTtlMs = 60 * day;
/** The longest lifetime of a prompt cache at a vendor: its token-hours then fit into 32 bits. */
export const cacheLifeMsMax = 30 * day;
/**
 * Tolerance for a vendor's clock, which may let a prompt cache expire later than requested. The
 * hold of a change covers it.
 */
export const cacheSlackMs = minute;
/** Validity of a URL that needs no key: as long as the vendor stores its target. */
export const nativeLinkMs = hour;
/** Maximum state of a job in its webhook (R-HOOK-7). */
export const nativePayloadBytesMax = 64 * kib;

// The call log

/**
 * Number of calls that a filtered list reads at first, the maximum at once, and its time limit. A
 * list returns in 200 ms, with a next page if it has not read everything.
 */
export const logWindowRows = 1_000;
export const logWindowRowsMax = 32_000;
export const logWindowsMs = 80;
/** Maximum number of calls that a histogram reads if hourly sums do not suffice. */
export const histogramRowsMax = 100_000;
/** Maximum number of calls in an export. */
export const exportRowsMax = 100_000;
/** Maximum number of live views of an account, and of a process. */
export const tailsPerAccountMax = 10;
export const tailsMax = 500;
/**
 * Duration of a live view, and its maximum silence: then permission is checked again and
 * disconnected viewers are noticed.
 */
export const tailMs = 15 * minute;
export const tailQuietMs = 15 * second;
/** Maximum number of calls in one message of a live view, and the pause between two messages. */
export const tailRowsMax = 200;
export const tailPauseMs = 200;
/**
 * Time for which a process counts as a watcher of the call log, and the interval at which it renews
 * that.
 */
export const watchTtlMs = 30 * second;
export const watchRenewMs = 10 * second;

// Sign-in to the console

/** Lifetime of a session after its last use, and after its sign-in. */
export const sessionIdleMs = 12 * hour;
export const sessionMs = 7 * day;
/** Precision of a session's last use, so that not every call writes. */
export const sessionSeenMs = minute;
/**
 * Time for which the previous token of a session stays valid after rotation: for calls that a page
 * has in flight.
 */
export const sessionOverlapMs = 10 * second;
/** Maximum number of sessions per user. A new one ends the oldest. */
export const sessionsMax = 50;
/** Maximum time a browser may take from requesting a code to signing in. */
export const browserSessionMs = 15 * minute;
/** Validity of a sign-in link, and the time for which its session needs no other proof. */
export const signInLinkMs = hour;
export const linkProofMs = 15 * minute;
/** A one-time code (R-KEY-3): number of digits, validity, and number of allowed checks. */
export const codeDigits = 7;
export const codeMs = 5 * minute;
export const codeChecksMax = 5;
/**
 * Maximum number of wrong codes per day from one browser or session for one number, independent of
 * the codes that are sent meanwhile. Other browsers have separate counts, so that strangers cannot
 * lock the owner out. The codes to a number are limited, too.
 */
export const codeGuessesMax = 15;
/**
 * Maximum number of wrong codes for a number over its life, from browsers without an earlier
 * sign-in to it. Each code is right with a probability of 1e-7, so that guessing succeeds with less
 * than 1e-4 (R-KEY-5). At the limits of a day, that takes 18 days without a pause.
 */
export const codeLifeGuessesMax = 900;
/**
 * Maximum number of codes per window: to one number (R-KEY-3; those for strangers, for known
 * browsers and for sessions count apart), for one account, and of strangers from one IP address and
 * to the numbers of one country. The total per day is configured.
 */
export const codeSendsMax = {
  phone: [
    { max: 1, withinMs: minute },
    { max: 5, withinMs: hour },
    { max: 10, withinMs: day },
  ],
  account: [
    { max: 10, withinMs: hour },
    { max: 20, withinMs: day },
  ],
  address: [
    { max: 10, withinMs: hour },
    { max: 30, withinMs: day },
  ],
  country: [{ max: 200, withinMs: hour }],
} as const;
/**
 * The share of the codes per day that strangers can use up. The rest is for known browsers and
 * sessions, so that strangers cannot keep owners out (R-KEY-5).
 */
export const codeStrangersShare = 0.75;
/** Default maximum number of codes per day. */
export const codesDailyDefault = 1_000;
/**
 * Maximum number of wrong passwords or authenticator codes per window: for one user, from one IP
 * address.
 */
export const failuresMax = {
  subject: { max: 10, withinMs: 15 * minute },
  address: { max: 50, withinMs: 15 * minute },
} as const;
/** Time for which codes and failures are stored: longer than any of these windows. */
export const signInTracesMs = 2 * day;
/** Interval at which expired sign-in data is deleted. */
export const signInCleanupMs = 10 * minute;
/** Timeout of an SMS provider. */
export const smsAnswerMs = 10 * second;

/**
 * Calls of a tool that a vendor runs, if neither the request nor the model sets a limit: the
 * maximum number of searches that a coding agent requests (8), and some more.
 */
export const toolCallsDefault = 10;

/**
 * The longest input of Gemini, the longest among widely offered models, in tokens. Routes with a
 * longer or shorter maximum are configured with their `max_context`.
 */
export const longestInputTokens = 1_048_576;
/**
 * Tokens of one call of such a tool that the model reads, for the hold: results of a search take
 * 2,000 to 10,000.
 */
export const toolInputTokens = 10_000;
