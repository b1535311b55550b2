/** What code may use, by name. Sizes are in bytes, times in milliseconds. */

const kibibyte = 1024;
const mebibyte = 1024 * kibibyte;

/** In characters. */
export const codeLengthMax = 50_000;
/** Arguments, and besides them the configuration and whatever else the function gets. */
export const argumentsBytesMax = mebibyte;
export const inputBytesMax = argumentsBytesMax + 256 * kibibyte;
export const resultBytesMax = mebibyte;
/** Levels of nesting of a result, and of what code asks the vault for. */
export const nestingMax = 64;
/** Of the same: members at any depth, where each object and each list counts once more. */
export const valuesMax = 100_000;

export const timeoutMsDefault = 10_000;
export const timeoutMsMax = 30_000;
export const timeoutMsMaxAsync = 900_000;
/** Code is evaluated when it is written, to see what it exports. */
export const checkMsMax = 2_000;
export const startMsMax = 10_000;

export const engineBytesMax = 64 * mebibyte;
/** More makes V8, whose own stack a call into the engine also uses, end the call without a JavaScript error. */
export const engineStackBytesMax = 256 * kibibyte;

export const logBytesMax = 64 * kibibyte;
export const logLinesMax = 1_000;
/** What is read, and dropped, of a log that is full, before the process counts as hostile. */
export const logBytesReadMax = mebibyte;

export const fetchesMax = 20;
/** Of `bt` and `vault`. */
export const vaultCallsMax = 100;
export const timersMax = 100;
/** Of all kinds; those that were refused count, too. More are an attack. */
export const requestsMax = 1_000;
/** Of all requests of a call together. */
export const requestsBytesMax = 48 * mebibyte;
/** At one time. */
export const pendingRequestsMax = 20;
/** A body in base64 and its headers. */
export const requestBytesMax = 2 * mebibyte;
export const replyBytesMax = 6 * mebibyte;
/** What waits for a process to read it. */
export const unreadBytesMax = 32 * mebibyte;

/**
 * A process whose messages took the parent so long to read is not used again for nine times as long: two
 * processes of a tenant take at most a fifth of a thread.
 */
export const readingMsFree = 2;
export const restPerReading = 9;

/** A process that served so many calls is replaced. */
export const callsPerProcessMax = 1_000;
/** A process that nobody used for so long is ended. */
export const idleMsMax = 30_000;
export const processesMax = 4;
export const callsPerTenantMax = 2;
export const waitingMax = 64;
export const waitingPerTenantMax = 16;
export const waitMsMax = 5_000;
