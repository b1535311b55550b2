/** Limits on what code may use. Sizes are in bytes, times in milliseconds. */

const kibibyte = 1024;
const mebibyte = 1024 * kibibyte;

/** In characters. */
export const codeLengthMax = 50_000;
/** Limits the arguments, and separately the configuration and all other inputs of the function. */
export const argumentsBytesMax = mebibyte;
export const inputBytesMax = argumentsBytesMax + 256 * kibibyte;
export const resultBytesMax = mebibyte;
/** Nesting levels of a result, and of the code's requests to the vault. */
export const nestingMax = 64;
/** Members at any depth of the same values; each object and each list also counts as one. */
export const valuesMax = 100_000;

export const timeoutMsDefault = 10_000;
export const timeoutMsMax = 30_000;
export const timeoutMsMaxAsync = 900_000;
/** Code is evaluated when it is stored, to find what it exports. */
export const checkMsMax = 2_000;
export const startMsMax = 20_000;
/** For determining, at the start of the vault, which isolation works. */
export const probeMsMax = 20_000;

export const engineBytesMax = 64 * mebibyte;
/** Calls into the engine use V8's stack. With more, V8 would end the call without a JavaScript error. */
export const engineStackBytesMax = 256 * kibibyte;

/**
 * The private memory of a process, which the system enforces (RLIMIT_DATA). V8 alone maps 512 MiB for compiled code,
 * used or not; a process needs 672 MiB to make 40 calls in a row (Node 26.10, x86_64).
 */
export const dataBytesMax = 768 * mebibyte;
/** For each string that code passes to the host: bytes in base64, for cryptography and encodings. */
export const hostTextLengthMax = 8 * mebibyte;
/** Memory that key derivation may allocate outside the engine, as in Node's default (`maxmem` of scrypt). */
export const derivationBytesMax = 32 * mebibyte;
/** The size of a derived key. */
export const derivedBytesMax = mebibyte;
export const randomBytesMax = mebibyte;

export const logBytesMax = 64 * kibibyte;
export const logLinesMax = 1_000;
/** Bytes of a full log that the parent reads and drops before it treats the process as hostile. */
export const logBytesReadMax = mebibyte;

export const fetchesMax = 20;
/** For `bt` and `vault`. */
export const vaultCallsMax = 100;
export const timersMax = 100;
/** For requests of all kinds; refused ones count too. More indicate an attack. */
export const requestsMax = 1_000;
/** For all requests of a call together. */
export const requestsBytesMax = 48 * mebibyte;
/** Concurrent requests. */
export const pendingRequestsMax = 20;
/** For a body in base64 and its headers. */
export const requestBytesMax = 2 * mebibyte;
export const replyBytesMax = 6 * mebibyte;
/** Bytes in the pipe that the process has not read yet. */
export const unreadBytesMax = 32 * mebibyte;

/**
 * If the parent takes longer than this to read the messages of a process, the process stays idle for nine times as
 * long. Thus two processes of a tenant take at most a fifth of a thread.
 */
export const readingMsFree = 2;
export const restPerReading = 9;

/** A process is replaced after this many calls. */
export const callsPerProcessMax = 1_000;
/** A process ends after this time without a call. */
export const idleMsMax = 30_000;
/** Calls that compute concurrently. */
export const runningMax = 4;
export const runningPerTenantMax = 2;
/** Calls that have begun, including those that wait for a host. A process takes about 60 MB. */
export const processesMax = 16;
export const processesPerTenantMax = 4;
export const waitingMax = 64;
export const waitingPerTenantMax = 16;
export const waitMsMax = 5_000;
