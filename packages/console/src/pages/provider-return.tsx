/** Where the identity provider sends people back, and the window in which they confirm that it is them. */
import { useEffect, useState } from 'preact/hooks';
import { confirmAtProvider, confirmPath, endAtProvider, isConfirming } from '../core/provider.ts';
import { navigate } from '../core/router.ts';
import { refresh, whoIsSignedIn } from '../core/session.ts';
import { t } from '../texts.ts';
import { ErrorNote, useAction } from '../ui/basics.tsx';
import { Logo } from '../ui/icons.tsx';

function titleOf({ isConfirmed, error }: { isConfirmed: boolean; error: unknown }): string {
  if (error !== undefined) return t.provider.failed;
  return isConfirmed ? t.provider.confirmed : t.provider.title;
}

let isBegun = false;

export function ProviderReturn({ response }: { readonly response: string }) {
  const [isConfirmed, setConfirmed] = useState(false);
  const [isSignedIn, setSignedIn] = useState(false);
  const { error, run } = useAction();
  useEffect(() => {
    document.title = `${t.gate.signIn} · Strongroom`;
    if (isBegun) return;
    isBegun = true;
    void run(async () => {
      if (isConfirming()) return confirmAtProvider();
      const { page, again } = await endAtProvider(response).catch(async (failure) => {
        setSignedIn((await whoIsSignedIn()) !== undefined);
        throw failure;
      });
      if (!again) {
        navigate(page, { replace: true });
        return refresh();
      }
      setConfirmed(true);
      window.close();
    });
  }, []);
  return (
    <main class="gate">
      <Logo size={40} />
      <h1>{titleOf({ isConfirmed, error })}</h1>
      <ErrorNote error={error} />
      {error !== undefined && (
        <p>
          <a class="button" href={isSignedIn ? confirmPath : '/console'} target="_self">
            {isSignedIn ? t.provider.again : t.provider.back}
          </a>
        </p>
      )}
      {isConfirmed && <p>{t.provider.close}</p>}
    </main>
  );
}
