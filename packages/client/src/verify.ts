/** Offline verification of what a vault signs: receipts of erasure, checkpoints of the log, and exports of the log. */
export {
  type LogFinding,
  type LogReport,
  type LogVerification,
  verifyLog,
} from './verify-log.ts';
export {
  type ErasureStatement,
  type LogStatement,
  ProofError,
  type TrustedKeys,
  verifyCheckpoint,
  verifyErasureReceipt,
} from './verify-statements.ts';
