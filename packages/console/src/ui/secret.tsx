/** A secret that is shown once, with a way to copy it. */
import { t } from '../texts.ts';
import { CopyButton } from './basics.tsx';

export function SecretOnce({ name, secret }: { name: string; secret: string }) {
  return (
    <>
      <p class="note warn">{t.once(name)}</p>
      <div class="code-block" data-testid="secret">
        <pre>{secret}</pre>
        <CopyButton text={secret} />
      </div>
    </>
  );
}
