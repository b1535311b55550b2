/** Asks the person to confirm with a passkey, or at the identity provider, before something that needs it is done. */
import { pendingProof } from '../core/presence.ts';
import { confirmInWindow } from '../core/provider.ts';
import { session } from '../core/session.ts';
import { usePasskey } from '../core/sign-in-ways.ts';
import { t } from '../texts.ts';
import { FormDialog } from './dialog.tsx';

export function PresenceDialog() {
  const pending = pendingProof.value;
  const current = session.value;
  if (!pending || !current) return null;
  const provider = current.sign_in === 'oidc' ? (current.identity_provider ?? '') : undefined;
  return (
    <FormDialog
      title={t.presence.title}
      submit={provider === undefined ? t.presence.confirm : t.provider.confirm(provider)}
      onClose={() => pending.settle(false)}
      onSubmit={async () => {
        await (provider === undefined ? usePasskey() : confirmInWindow());
        pending.settle(true);
      }}
    >
      <p>{provider === undefined ? t.presence.text : t.provider.text(provider)}</p>
    </FormDialog>
  );
}
