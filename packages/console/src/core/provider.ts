/** Signing in with the identity provider of the operator, and confirming with it that it is you. */
import { send } from './sign-in-ways.ts';

/** To where the provider sends people back. */
const returnPath = '/console/oidc';
const confirmQuery = '?again';
/** The address of the window in which a person confirms. */
export const confirmPath = returnPath + confirmQuery;

/** Where it sent the person back, with what it says. It is taken out of the address at once, which a history keeps. */
export const providerReturn = returnIn(location);
if (providerReturn !== undefined) history.replaceState(null, '', returnPath);

function returnIn({ pathname, search }: Location): string | undefined {
  return pathname === returnPath ? search : undefined;
}

const channelName = 'strongroom-confirmed';

/** Leaves for the provider. The person comes back to the page. */
export async function goToProvider(options: {
  readonly page: string;
  readonly tenant?: string | undefined;
}): Promise<void> {
  const { url } = await send('POST', '/oidc', options);
  location.assign(url);
}

/** Whether the window is the one in which a person confirms. */
export function isConfirming(): boolean {
  return providerReturn === confirmQuery;
}

/** Leaves for the provider, which asks the person to sign in again. */
export async function confirmAtProvider(): Promise<void> {
  const { url } = await send('POST', '/oidc', { again: true });
  location.assign(url);
}

export interface ProviderOutcome {
  /** The page on which the person goes on. */
  readonly page: string;
  /** Whether the person was signed in before, and has confirmed. */
  readonly again: boolean;
}

/** Hands over what the provider says. */
export async function endAtProvider(response: string): Promise<ProviderOutcome> {
  const outcome = await send('POST', '/oidc/response', { response });
  if (outcome.again) new BroadcastChannel(channelName).postMessage('confirmed');
  return outcome;
}

let waiting: BroadcastChannel | undefined;

/**
 * Opens the provider in a window of its own: what was typed on this page stays. Call it in response to a click, or the
 * browser opens none. Resolves when the person has confirmed there.
 */
export function confirmInWindow(): Promise<void> {
  window.open(confirmPath, '_blank', 'popup,width=520,height=680');
  waiting?.close();
  const channel = new BroadcastChannel(channelName);
  waiting = channel;
  return new Promise((resolve) => {
    channel.onmessage = () => {
      channel.close();
      resolve();
    };
  });
}
