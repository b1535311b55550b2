/** Why a value is revealed or sent whole: the log stores it next to the name of the person. */
import { t } from '../texts.ts';
import { TextField } from './basics.tsx';

/** As long as the vault takes it. */
const reasonLengthMax = 120;

interface ReasonFieldProps {
  readonly hint: string;
  readonly reason: string;
  readonly onReason: (reason: string) => void;
}

export function ReasonField({ hint, reason, onReason }: ReasonFieldProps) {
  return (
    <TextField
      label={t.reason.label}
      hint={hint}
      value={reason}
      onValue={onReason}
      maxLength={reasonLengthMax}
    />
  );
}
