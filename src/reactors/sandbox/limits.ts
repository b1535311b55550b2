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
export const startMsMax = 20_000;
/** For finding out, at the start of the vault, how processes can be kept apart. */
export const probeMsMax = 20_000;

export const engineBytesMax = 64 * mebibyte;
/** More makes V8, whose own stack a call into the engine also uses, end the call without a JavaScript error. */
export const engineStackBytesMax = 256 * kibibyte;

/**
 * Of private memory that a process may have, which the system enforces (RLIMIT_DATA). V8 alone maps 512 MiB for
 * compiled code, touched or not; a process needs 672 MiB to make 40 calls in a row (Node 26.10, x86_64).
 */
export const dataBytesMax = 768 * mebibyte;
/** Of a text that code hands to the host at once: bytes in base64, for cryptography and encodings. */
export const hostTextLengthMax = 8 * mebibyte;
/** What key derivation may allocate outside the engine, as Node's own default (`maxmem` of scrypt). */
export const derivationBytesMax = 32 * mebibyte;
/** Of a derived key. */
export const derivedBytesMax = mebibyte;
export const randomBytesMax = mebibyte;

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
/** Calls that compute at one time. */
export const runningMax = 4;
export const runningPerTenantMax = 2;
/** Calls that have begun, with those that wait for a host. A process takes about 60 MB. */
export const processesMax = 16;
export const processesPerTenantMax = 4;
export const waitingMax = 64;
export const waitingPerTenantMax = 16;
export const waitMsMax = 5_000;
