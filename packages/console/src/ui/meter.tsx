/** How much of a limit, or of some work, is used or done. */
interface MeterProps {
  readonly label: string;
  readonly value: number;
  readonly max: number;
  /** Its label is shown next to it already. */
  readonly isBare?: boolean;
}

const nearlyFull = 0.9;

export function Meter({ label, value, max, isBare }: MeterProps) {
  const part = Math.min(1, value / max);
  return (
    <div>
      {!isBare && <p class="hint">{label}</p>}
      <div class="meter" role="img" aria-label={label}>
        <i
          class={!isBare && part > nearlyFull ? 'full' : undefined}
          style={{ width: `${100 * part}%` }}
        />
      </div>
    </div>
  );
}
