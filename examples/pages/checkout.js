// Stores the card, lets the shop charge it by its token, and shows it back to its owner.
const fields = Strongroom.fields({ key: document.body.dataset.key });
const [form, card, result, receipt, paid, show] = [
  ...['form', 'card', 'result', 'receipt', 'paid', 'show'],
].map((id) => document.getElementById(id));
let order;

form.addEventListener('submit', async (event) => {
  event.preventDefault();
  await attempt(async () => {
    const { id } = await fields.tokens.create({ type: 'card', data: card });
    const charged = await ask('pay', { token: id });
    order = charged.order;
    result.textContent = `Paid with the card that ends in ${charged.ending}. Thank you!`;
    form.hidden = true;
    receipt.hidden = false;
  });
});

show.addEventListener('click', () =>
  attempt(async () => {
    const { nonce } = await fields.sessions.create();
    const { token } = await ask('show-card', { order, nonce });
    await paid.show({ token });
    show.hidden = true;
  }),
);

/** A request to the server of the shop. */
async function ask(path, body) {
  const response = await fetch(path, { method: 'POST', body: JSON.stringify(body) });
  const answer = await response.json();
  if (answer.error) throw new Error(answer.error);
  return answer;
}

async function attempt(action) {
  try {
    await action();
  } catch (error) {
    if (error.code !== 'incomplete') result.textContent = error.customerMessage ?? error.message;
  }
}
