// A page without a framework: the loader of the vault defines the elements and `Strongroom`.
const fields = Strongroom.fields({ key: document.body.dataset.key });
const [form, number, expiry, code, result] = ['form', 'number', 'expiry', 'code', 'result'].map(
  (id) => document.getElementById(id),
);

form.addEventListener('submit', async (event) => {
  event.preventDefault();
  try {
    const token = await fields.tokens.create({
      type: 'card',
      data: { number, expiration_month: expiry.month, expiration_year: expiry.year, cvc: code },
    });
    result.textContent = `Saved: ${token.data.number}`;
  } catch (error) {
    // A field that is not complete says so itself.
    if (error.code !== 'incomplete') result.textContent = error.customerMessage;
  }
});
