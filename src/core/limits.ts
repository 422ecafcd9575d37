/**
 * Every fixed limit of the gateway, with its unit and its reason, so that none is overlooked. Settings of an
 * installation are in config.ts. Times are in milliseconds and sizes in bytes where nothing else is said.
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
 * Bytes of a refused body that are read and discarded. Clients that send a short body before they read the reply get
 * it on a connection that stays open; a longer body costs the gateway bandwidth that nobody pays.
 */
export const discardedBodyBytesMax = mib;
/**
 * Time between the end of reading a refused body and the end of its connection: the client's sending stalls, so that
 * it reads the reply, which would be lost if the connection were reset at once.
 */
export const discardedBodyLingerMs = second;
/**
 * Maximum bytes of request bodies that are not complete: of one key, of one account in the console, of all callers of
 * another kind; and of the process. Clients that never end uploads cannot take more memory.
 */
export const unfinishedBodyBytesMax = { owner: 64 * mib, process: 256 * mib } as const;
/** Maximum message of an RPC whose caller is not identified: room for a sign-in form. */
export const anonymousMessageBytesMax = 64 * kib;
/** How long a client may take to send the head of a request. */
export const headMs = 10 * second;
/** How long a client may take to send one request. */
export const requestMs = 5 * minute;
/**
 * Keys of an account that its own users may have: those that are not deleted, and those created within a day. Operators
 * may create more.
 */
export const accountKeysMax = 1_000;
/** Maximum request head. */
export const headerBytesMax = 16 * kib;
/** Maximum nesting of a JSON body; the outermost value is level 1. */
export const jsonDepthMax = 64;
/** Maximum number of objects, lists, names and texts in a JSON body: reading one takes about a microsecond, and the event
 * loop waits for it. A conversation of a million tokens has fewer. And of other values: they take a tenth of that, and a
 * request for embeddings can have a million tokens. */
export const [jsonPartsMax, jsonNumbersMax] = [300_000, 2_000_000];
/** Maximum length of a request id, in characters. */
export const requestIdCharsMax = 256;
/** Maximum reply that is not streamed. It is read whole before its head is sent, so a cut reply can become an error. */
export const replyBytesMax = 64 * mib;
/** How much of a vendor's error reply is read. */
export const refusalBytesMax = mib;
/** Maximum stream event; a longer one fails its stream. */
export const eventBytesMax = 16 * mib;
/** How many times its size a compressed reply may unpack to. JSON and events compress 5 to 50 times. */
export const decodedRatioMax = 200;
/** Default of `timeouts.total`: longer than any reply of a model. */
export const totalMs = hour;
/** How much of a stream may wait for a slow client before the vendor is paused. */
export const streamBufferBytesMax = 256 * kib;
/** Default maximum of concurrent calls to models per process. About as many paced streams as one core serves (50 events
 * a second each, about 20 µs per event). More JSON calls would only wait: 2,000 of them for seconds. */
export const concurrentCallsMax = 1_000;
/** Maximum number of concurrent token counts, polls and other free requests of an account and process: more than an SDK
 * sends at once, and few beside {@link concurrentCallsMax}, which all accounts together may run. */
export const freeWorkAccountMax = 64;
/** A vendor gets token counts only while less than this part of its `max_in_flight` is in use: the rest is for calls that
 * are paid for. */
export const countInFlightShare = 1 / 2;
/** How long a call may wait for room in its limits at most: clients and proxies give up on longer silence. */
export const limitWaitMsMax = 30 * second;
/** Default time that a process still serves after SIGTERM while `/readyz` says 503: longer than most load balancers take
 * between two checks. */
export const drainDelayMsDefault = 5 * second;
/** How long running calls may continue after that. */
export const drainMs = minute;
/** Default of `timeouts.first_byte` for the first content of a stream: a vendor that has sent nothing by then rarely does.
 * Models that reason may think for longer, and have the default of complete replies. */
export const firstContentMs = 30 * second;
/** Default of `disconnect_grace`: how long a reply is read on after its client disconnected. Within 5 s nearly every reply
 * that has begun is complete, with the vendor's own usage. */
export const disconnectGraceMs = 5 * second;
/** Maximum for replies that are read to their end after a disconnect. */
export const detachedReplyMs = hour;
/** Maximum number of replies that a process reads after a disconnect: each keeps a connection and up to
 * {@link streamBufferBytesMax}. The vendors of further ones are stopped. */
export const detachedRepliesMax = 256;
/** Default and maximum page size of lists. */
export const pageSizeDefault = 100;
export const pageSizeMax = 1_000;
/** Maximum number of buckets in a usage series: 41 days by the hour, more than a chart can show. */
export const bucketsMax = 1_000;

/** How many calls of one recognised key that is disabled, deleted or expired are recorded in
 * {@link refusedKeyWindowMs}: enough to identify the caller. The rest is counted. */
export const refusedKeyRecordsMax = 10;
/** The window of {@link refusedKeyRecordsMax} and {@link refusedKeysMax}. */
export const refusedKeyWindowMs = minute;
/** How many such keys have calls recorded in {@link refusedKeyWindowMs}. */
export const refusedKeysMax = 10_000;

// Holds and the ledger

/** How often a process sends its heartbeat to the database. */
export const nodeHeartbeatMs = 5 * second;
/** A process without a heartbeat for this long counts as dead. Four heartbeats: a late one and a long turn of the event
 * loop do no harm. With {@link holdRecoveryMs} it keeps money of a dead process held for less than 60 s. */
export const nodeSilentMs = 20 * second;
/** How long a hold lives without renewal: for holds of no known process. */
export const holdTtlMs = 15 * minute;
/** How often a live process renews the holds of its running calls. */
export const holdRenewMs = minute;
/** Recovery interval of the holds of dead processes and of expired holds. */
export const holdRecoveryMs = 5 * second;
/** How long released holds, and the extensions of holds, are kept after the end of their month, in days: so long receipts
 * show them. */
export const endedHoldKeptDays = 31;
/** How long a call waits for its hold before it gets 503. */
export const holdWaitMs = 900;
/** How long a submit of a task waits, all its statements together, for a database that answers nobody before it gets
 * 503. */
export const submitWaitMs = holdWaitMs;
/** How long the shutdown of a process waits for a lost database, where a journal keeps all settlements. */
export const awayCloseMs = second;
/** Maximum number of operations in one ledger batch. */
export const ledgerBatchMax = 1_000;
/** Maximum number of concurrent ledger batches, each on its own connection. */
export const ledgerConnections = 4;
/** Output tokens that the first hold of a stream covers, where the model's configuration does not say: as many as nearly
 * every reply has, so that few holds have to grow. */
export const holdOutputTokensDefault = 2_048;
/** How long a stream whose hold is used up is not read while the ledger has not answered: long for a database that works.
 * Then it continues, as in an outage. */
export const extendWaitMs = 5 * second;
/** How often running streams are compared with their holds. */
export const streamCheckMs = second;
/** When a stream writes its first checkpoint, and the interval of later ones. A killed process loses only what came
 * since. Most streams end before the first. */
export const checkpointFirstMs = second;
export const checkpointMs = 5 * second;
/** How long a stream continues whose hold is used up and cannot grow because the database does not answer. */
export const streamOutageMs = minute;

/** How long a settlement waits for the database before it goes to the journal: long for a database that works, short
 * for a caller whose reply ends only then. */
export const journalAfterMs = 250;
/** Maximum number of settlements in the journal of a process. Only running calls can add to it: without a database new
 * calls are refused. */
export const journalEntriesMax = 100_000;
/** Maximum size of a process's journal: over 100,000 settlements of 0.7 KB. With nine failed attempts one has 2.2 KB. */
export const journalBytesMax = 128 * mib;
/** A journal of this size is written anew, without the settlements that the database has. */
export const journalCompactBytes = 8 * mib;
/** Pause after a failed write to the journal. */
export const journalRetryMs = second;

// Stop sequences

/** The most stop sequences that the gateway itself looks for in a reply, for vendors that take none or fewer. Each one
 * is searched in every piece of text. */
export const stopSequencesMax = 16;
/** The longest of them, in characters: that much text may be held back. */
export const stopSequenceCharsMax = 500;

// Token counting

/** Bytes per token where a call is charged by an estimate. Holds use a stricter bound, see wire/json. */
export const bytesPerToken = 4;
/** Maximum text whose tokens are counted exactly, and the timeout of the count: the worst such text takes 2 s. */
export const countBytesMax = 2 * mib;
export const countTimeoutMs = 5 * second;
/** How long a free count is waited for, queue included; how many texts of an account may wait, and are remembered. */
export const countDeadlineMs = holdWaitMs;
export const [countAccountMax, countCacheMax] = [16, 1_000];
/** How many texts may wait for the counting thread. Further ones are estimated. */
export const countQueueMax = 256;
/** How long the counting thread stays idle before it ends, and the pause before a new one after a failure. */
export const countIdleMs = minute;
export const countRestMs = 10 * second;

// Stored responses

/** How long a stored response lives after it, or a response that continues it, was created. */
export const storedResponseTtlMs = 30 * day;
/** How long the events of a background response can be read again after it was requested: a little more than the day
 * within which it ends. Events take ten times the space of the response. */
export const storedEventsTtlMs = 26 * hour;
/** Maximum stored response with its input. A longer one is answered, but cannot be read or continued by its id. */
export const storedResponseBytesMax = 8 * mib;
/** Maximum storage per account. Beyond it the responses that would expire first are deleted. */
export const storedAccountBytesMax = 1_024 * mib;
/** Maximum number of responses that a request can continue by id: each is one look-up. */
export const storedChainMax = 1_000;
/** How long a call waits for stored state: to read it, and to store it before its last byte. Equal to
 * {@link holdWaitMs}. */
export const stateWaitMs = 900;
/** Maximum number of items that a request can refer to by id: each is one look-up. */
export const itemReferencesMax = 5_000;
/** Maximum length of a response id in characters: the router accepts no longer ones. */
export const responseIdCharsMax = 100;
/** How long reasoning is kept for a chat client that returns with a tool result. */
export const keptReasoningTtlMs = day;
/** Maximum reasoning that is kept of one turn. */
export const keptReasoningBytesMax = mib;

// Tasks

/** How long a task belongs to a process without renewal. After a kill another process continues it within 30 s. */
export const taskLeaseMs = 25 * second;
/** How often a process renews the leases of its tasks. */
export const taskHeartbeatMs = 8 * second;
/** How often a process looks for due tasks. It starts its own ones at once. */
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
/** Pause before the first status poll; later ones grow by half each time, up to {@link taskPollMsMax}. */
export const taskPollMs = second;
export const taskPollMsMax = 15 * second;
/** How long a vendor may take to show a submitted task. Only then its "not found" is believed. As long has a process to
 * store a vendor's answer after an outage of the database, before the answer counts as lost. */
export const taskSettleMs = 10 * second;
/** How long a vendor that cannot be polled may take to report a task. */
export const taskUnknownMs = 10 * minute;
/** How long a vendor is asked for the cost of a task that ended without a charge: vendors forget tasks after a day. */
export const taskTrailMs = day;
/** Maximum number of consecutive connection failures before a task fails: about four minutes. */
export const taskConnectsMax = 20;
/** How long a task waits for its operator where every vendor refuses the operator's account, counted from its first
 * submission; at most half of its deadline. Then it fails. */
export const taskFaultMs = 2 * minute;
/** Maximum pause before such a vendor is asked again; it grows from {@link taskPollMs}. */
export const taskFaultPauseMs = minute;
/** Maximum number of attempts to fetch a result before the task fails. */
export const taskFetchesMax = 6;
/** How long a task is kept after its end: as long as its callback id is valid. */
export const taskKeptMs = 30 * day;
/** How long a task may be queued. */
export const taskQueueMs = day;
/** How long the hold of a task lives: longer than any task, since a task ends its hold itself. */
export const taskHoldTtlMs = 3 * taskQueueMs;
/** Maximum number of waiting polls and watches per account and process. */
export const parkedPollsMax = 100;
/** Default deadline of a task since its vendor was first asked. */
export const taskRunMs = 30 * minute;
/** How long a vendor may take to answer a task, where its own timeouts are shorter: some vendors create a whole image
 * first and charge it in any case. The deadline of the task ends it. */
export const vendorWorkMs = 30 * minute;

// Webhooks

/** Maximum length of a URL that a customer gives us to call, in characters. */
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
/** The share of {@link webhookNodeMax} for endpoints that failed or are slow; and the share for those together with
 * endpoints of unknown health. The rest is for endpoints that answer, however many others hang. */
export const webhookSuspectShare = 0.5;
export const webhookUnprovenShare = 0.85;
/** An endpoint whose delivery takes longer counts as slow. */
export const webhookSlowMs = second;
/** How long a delivery belongs to the process that claimed it: one attempt and some reserve. Then another process sends
 * it. */
export const webhookLeaseMs = 15 * second;
/** How often a process looks for due deliveries without a notification: retries, and lost notifications. */
export const webhookScanMs = 500;
/** Minimum interval of progress webhooks of a task. */
export const webhookProgressMs = second;
/** Number of consecutive failures that opens the breaker of an endpoint. */
export const webhookBreakerFailures = 5;
/** Wait of an open breaker before its first probe, and the maximum before later ones. */
export const webhookProbeMs = 30 * second;
export const webhookProbeMsMax = 10 * minute;
/** How long an endpoint may fail before its deliveries are parked. */
export const webhookDeadMs = 120 * hour;
/** How long webhooks and their attempts are kept. */
export const webhookKeptMs = 30 * day;
/** How long a replaced secret stays valid. */
export const webhookRotationMs = day;
/** How much of an endpoint's response is kept. */
export const webhookAnswerBytesKept = 2 * kib;

// Result files

/** Maximum result file. */
export const resultBytesMax = 512 * mib;
/** How long result files are kept (R-TSK-8). */
export const resultTtlMs = 7 * day;
/** How long an expired file answers 410 instead of 404. */
export const resultMemoryMs = 30 * day;
/** An unfinished file of this age is removed: older than {@link resultFetchMs} and {@link resultUploadMs} together. */
export const resultPendingMs = hour;
/** Timeouts of a download from a vendor: until its head, between two reads, and in total. */
export const resultHeadMs = 30 * second;
export const resultIdleMs = minute;
export const resultFetchMs = 15 * minute;
/** Timeout of an upload to the storage. */
export const resultUploadMs = 30 * minute;
/** Maximum number of redirects of a result: the storage of a vendor is often one away. */
export const resultRedirectsMax = 3;
/** Maximum number of result files that a process sends at once. Further readers get 503. Each takes a file descriptor or
 * a connection to the storage. */
export const resultReadersMax = 500;
/** How long a reader of a result file may read nothing. */
export const resultReaderIdleMs = minute;
/** How often expired result files are deleted. They are not served meanwhile. */
export const resultExpireMs = 10 * minute;

// Native interfaces

/** How long a vendor may take to answer where a client may ask it to wait (`Prefer: wait` is at most 60 s). */
export const nativeWaitMs = 75 * second;
/** How long the head of a vendor's stream waits for the first event, which may report a problem with the operator's
 * account. Such an event comes at once. */
export const nativeFaultWaitMs = second;
/** Maximum age of a job's reported state: all customers share one rate limit of their vendor. */
export const nativeRefreshMs = second;
/** Maximum state of a job that is kept. A longer one is asked for each time. */
export const nativeKeptBytesMax = mib;
/** How long the owner of a vendor's object is remembered: longer than any served vendor keeps one. */
export const nativeObjectTtlMs = 60 * day;
/** The longest life of a prompt cache at a vendor: its token-hours then fit into 32 bits. */
export const cacheLifeMsMax = 30 * day;
/** How much later than asked a vendor's clock may let a prompt cache expire. The hold of a change covers it. */
export const cacheSlackMs = minute;
/** How long a URL works that needs no key: as long as the vendor keeps its target. */
export const nativeLinkMs = hour;
/** Maximum state of a job in its webhook (R-HOOK-7). */
export const nativePayloadBytesMax = 64 * kib;

// The call log

/** How many calls a filtered list reads at first, and at most, at once; and for how long. A list answers in 200 ms, with
 * a next page where it has not read everything. */
export const logWindowRows = 1_000;
export const logWindowRowsMax = 32_000;
export const logWindowsMs = 80;
/** Maximum number of calls that a histogram reads where hourly sums do not suffice. */
export const histogramRowsMax = 100_000;
/** Maximum number of calls in an export. */
export const exportRowsMax = 100_000;
/** Maximum number of live views of an account, and of a process. */
export const tailsPerAccountMax = 10;
export const tailsMax = 500;
/** How long a live view lasts, and how long it may be silent: then permission is checked again and disconnected viewers
 * are noticed. */
export const tailMs = 15 * minute;
export const tailQuietMs = 15 * second;
/** Maximum number of calls in one message of a live view, and the pause between two messages. */
export const tailRowsMax = 200;
export const tailPauseMs = 200;
/** How long a process counts as a watcher of the call log, and how often it renews that. */
export const watchTtlMs = 30 * second;
export const watchRenewMs = 10 * second;

// Sign-in to the console

/** How long a session lives after its last use, and after its sign-in. */
export const sessionIdleMs = 12 * hour;
export const sessionMs = 7 * day;
/** Precision of a session's last use, so that not every call writes. */
export const sessionSeenMs = minute;
/** How long the previous token of a session stays valid after rotation: for calls that a page has in flight. */
export const sessionOverlapMs = 10 * second;
/** Maximum number of sessions per user. A new one ends the oldest. */
export const sessionsMax = 50;
/** How long a browser may take from requesting a code to signing in. */
export const browserSessionMs = 15 * minute;
/** How long a sign-in link is valid, and how long its session needs no other proof. */
export const signInLinkMs = hour;
export const linkProofMs = 15 * minute;
/** A one-time code (R-KEY-3): number of digits, how long it is valid, and how many checks it allows. */
export const codeDigits = 7;
export const codeMs = 5 * minute;
export const codeChecksMax = 5;
/** Maximum number of wrong codes per day from one browser or session for one number, whatever is sent meanwhile. Others
 * have counts of their own: nobody can lock the owner out. The codes to a number are limited, too. */
export const codeGuessesMax = 15;
/** Maximum number of wrong codes for a number over its life, from browsers that nobody has signed in with to it before:
 * each is right with a probability of 1e-7, so that guessing succeeds with less than 1e-4 (R-KEY-5). At the limits of a
 * day, that takes 18 days without a pause. */
export const codeLifeGuessesMax = 900;
/** Maximum number of codes per window: to one number (R-KEY-3; those for strangers, for known browsers and for sessions
 * count apart), for one account, and of strangers from one IP address and to the numbers of one country. The total per
 * day is configured. */
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
/** The share of the codes per day that strangers can use up. The rest is for known browsers and sessions, so that strangers
 * cannot keep owners out (R-KEY-5). */
export const codeStrangersShare = 0.75;
/** Maximum number of codes per day where the configuration does not say. */
export const codesDailyDefault = 1_000;
/** Maximum number of wrong passwords or authenticator codes per window: for one user, from one IP address. */
export const failuresMax = {
  subject: { max: 10, withinMs: 15 * minute },
  address: { max: 50, withinMs: 15 * minute },
} as const;
/** How long codes and failures are kept: longer than any of these windows. */
export const signInTracesMs = 2 * day;
/** How often expired sign-in data is deleted. */
export const signInCleanupMs = 10 * minute;
/** Timeout of an SMS provider. */
export const smsAnswerMs = 10 * second;

/** Calls of a tool that a vendor runs, where neither the request nor the model sets a limit: the searches that a coding
 * agent asks for at most (8), and some more. */
export const toolCallsDefault = 10;

/** The longest input of Gemini, the longest of the models that vendors offer widely, in tokens. Routes of longer ones, and
 * shorter ones, are configured with their `max_context`. */
export const longestInputTokens = 1_048_576;
/** Tokens that the model reads of one call of such a tool, for the hold: results of a search take 2,000 to 10,000. */
export const toolInputTokens = 10_000;
