/** The reason for a request, in the words of its caller: a header, whose text the entries of the log repeat. */
import { invalid } from '../../base/errors.ts';

const reasonLengthMax = 120;

/** Nothing invisible: it would show the rest of a line in another order, or pass for another reason. */
const form = /^[^\p{C}\p{Zl}\p{Zp}]+$/u;
/** Shorter numbers name orders and cases. Longer ones may be those of cards and accounts. */
const longNumber = /[0-9](?:[ -]?[0-9]){11}/;

/**
 * @param sent percent-encoded UTF-8, because a header holds nothing else than ASCII.
 * @throws VaultError `validation_failed`, which names the header.
 */
export function parseReason(sent: string, header: string): string {
  let reason: string;
  try {
    reason = decodeURIComponent(sent).trim();
  } catch {
    throw invalid(header, 'must be percent-encoded UTF-8');
  }
  if (reason.length > reasonLengthMax || !form.test(reason)) {
    throw invalid(header, `must be one line of 1 to ${reasonLengthMax} visible characters`);
  }
  if (longNumber.test(reason)) {
    throw invalid(header, 'must not contain a number of 12 or more digits: the log stores it');
  }
  return reason;
}
