/** Asks the person to confirm with a passkey, before something that needs it is done. */
import { pendingProof } from '../core/presence.ts';
import { usePasskey } from '../core/sign-in-ways.ts';
import { t } from '../texts.ts';
import { FormDialog } from './dialog.tsx';

export function PresenceDialog() {
  const pending = pendingProof.value;
  if (!pending) return null;
  return (
    <FormDialog
      title={t.presence.title}
      submit={t.presence.confirm}
      onClose={() => pending.settle(false)}
      onSubmit={async () => {
        await usePasskey();
        pending.settle(true);
      }}
    >
      <p>{t.presence.text}</p>
    </FormDialog>
  );
}
